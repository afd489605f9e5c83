//! The parts of earlier passes that later ones need.

use std::collections::BTreeSet;

use agents_nos::{Passed, Step, SwitchModel, SwitchObject};

use crate::drift_log::DriftLog;
use crate::problems::Problems;
use crate::retries::Retries;

/// The parts of earlier passes that later ones need.
#[derive(Debug, Default)]
pub(crate) struct PassMemory {
    pub(crate) last: Option<LastPass>,
    pub(crate) retries: Retries,
    pub(crate) drift: DriftLog,
    /// Passes in a row that did not come to all of their steps.
    pub(crate) unfinished: u32,
    /// Objects that stay as somebody made them.
    pub(crate) held: BTreeSet<SwitchObject>,
}

/// The end of the last pass.
#[derive(Debug)]
pub(crate) struct LastPass {
    pub(crate) wanted: SwitchModel,
    /// Steps that were left. `None` if the pass did not come to its end.
    pub(crate) left: Option<Vec<Step>>,
}

impl PassMemory {
    /// The objects that are not as desired, the gravest first.
    pub(crate) fn problems(&self, passed: &Passed, invalid: Vec<String>) -> Problems {
        let mut out = Problems::default();
        for (object, retry) in self.retries.iter() {
            out.failing(object, retry);
        }
        for drift in self.drift.open() {
            if self.held.contains(&drift.object) {
                out.held(drift);
            }
        }
        for held in &passed.held {
            out.waiting(&held.step.object(), &held.waits_for);
        }
        for step in &passed.untried {
            out.untried(&step.object());
        }
        for problem in &passed.problems {
            out.refused(problem);
        }
        for reason in invalid {
            out.invalid(reason);
        }
        out
    }
}
