//! The objects that are not as desired, for a report.

use agents_nos::{Drift, Problem, SwitchObject};

use crate::retries::Retry;

/// Problems in a report. Further ones are counted.
const LISTED_MAX: usize = 64;
/// Problems in the error of a report. A desired state of 500 VRFs for a switch without VRFs would
/// otherwise fill every report.
const ERROR_MAX: usize = 20;

/// The objects that are not as desired. The gravest kind is added first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems {
    listed: Vec<ObjectProblem>,
    omitted: usize,
}

/// An object that is not as desired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectProblem {
    /// The object in words. Empty for a part of the desired state that names none.
    pub(crate) object: String,
    /// The reason.
    pub(crate) reason: String,
    /// Failed attempts in a row. 0 if nothing was tried.
    pub(crate) attempts: u32,
}

impl Problems {
    /// Adds an object whose steps fail.
    pub(crate) fn failing(&mut self, object: &SwitchObject, retry: &Retry) {
        self.add(
            object.to_string(),
            retry.failure.to_string(),
            retry.attempts,
        );
    }

    /// Adds an object that waits for another one. An object that waits more than once counts once.
    pub(crate) fn waiting(&mut self, object: &SwitchObject, waits_for: &SwitchObject) {
        let object = object.to_string();
        if self.listed.iter().all(|known| known.object != object) {
            self.add(object, format!("waits for {waits_for}"), 0);
        }
    }

    /// Adds an object that a pass did not come to.
    pub(crate) fn untried(&mut self, object: &SwitchObject) {
        let object = object.to_string();
        if self.listed.iter().all(|known| known.object != object) {
            self.add(
                object,
                "waits, because the switch answers too late".into(),
                0,
            );
        }
    }

    /// Adds an object that stays as somebody made it.
    pub(crate) fn held(&mut self, drift: &Drift) {
        let Drift { seen, desired, .. } = drift;
        let reason = format!("was changed by hand and is held: {seen}; desired: {desired}");
        self.add(drift.object.to_string(), reason, 0);
    }

    /// Adds a part of the desired state that the switch cannot have.
    pub(crate) fn refused(&mut self, problem: &Problem) {
        self.add(problem.object.to_string(), problem.refusal.to_string(), 0);
    }

    /// Adds a part of control's message that is not valid.
    pub(crate) fn invalid(&mut self, reason: String) {
        self.add(String::new(), reason, 0);
    }

    /// The first problems, at most 64.
    pub(crate) fn listed(&self) -> &[ObjectProblem] {
        &self.listed
    }

    /// Number of problems that are not listed.
    pub(crate) fn omitted(&self) -> u32 {
        u32::try_from(self.omitted).unwrap_or(u32::MAX)
    }

    /// The problems in one line, the first ones in full. Without numbers that change at each
    /// attempt: each change of the text is an entry in control's log.
    pub(crate) fn error(&self) -> String {
        let shown = self.listed.iter().take(ERROR_MAX);
        let mut shown: Vec<String> = shown.map(ObjectProblem::text).collect();
        let more = self.listed.len() - shown.len() + self.omitted;
        if more > 0 {
            shown.push(format!("and {more} more"));
        }
        shown.join("; ")
    }

    fn add(&mut self, object: String, reason: String, attempts: u32) {
        if self.listed.len() >= LISTED_MAX {
            self.omitted += 1;
            return;
        }
        self.listed.push(ObjectProblem {
            object,
            reason,
            attempts,
        });
    }
}

impl ObjectProblem {
    fn text(&self) -> String {
        if self.object.is_empty() {
            return self.reason.clone();
        }
        let separator = if self.attempts > 0 { ":" } else { "" };
        format!("{}{separator} {}", self.object, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use agents_nos::Vni;

    use super::*;

    #[test]
    fn a_report_is_bounded() {
        let segment = |number| SwitchObject::Segment(Vni::new(number).unwrap());
        let mut problems = Problems::default();
        problems.waiting(&segment(1), &segment(2));
        problems.waiting(&segment(1), &segment(3));
        assert_eq!(problems.error(), "segment 1 waits for segment 2");
        for number in 0..100 {
            problems.invalid(format!("port {number}"));
        }
        assert_eq!((problems.listed().len(), problems.omitted()), (64, 37));
        assert!(problems.error().ends_with("; port 18; and 81 more"));
    }
}
