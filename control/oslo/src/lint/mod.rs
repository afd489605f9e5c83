//! The lint: a policy file beside the defaults, before it is loaded.

mod change;
mod danger;
mod remark;

use crate::fault::PolicyFault;
use crate::file::PolicyFile;
use crate::ironic;
use crate::persona::samples_of;
use crate::policy::OsloPolicy;

pub use change::{AccessChange, CallAccess};
pub use danger::{DangerKind, DangerousRule};
pub use remark::LintRemark;

/// The difference that a policy file makes.
#[derive(Debug)]
pub struct PolicyLint {
    /// Calls that sample callers gain or lose, in the order of the rules.
    pub changes: Vec<AccessChange>,
    /// Rules by which callers gain what belongs to others.
    pub dangerous: Vec<DangerousRule>,
    /// Parts of the file that do not do what they seem to.
    pub remarks: Vec<LintRemark>,
}

impl PolicyLint {
    /// Compares a file with the defaults of Ironic.
    ///
    /// # Errors
    /// The file cannot be compiled.
    pub fn of(file: &PolicyFile) -> Result<Self, PolicyFault> {
        let before = ironic::policy(&PolicyFile::default())?;
        let after = ironic::policy(file)?;
        let samples = samples_of(file);
        let changes = change::between(&before, &after, &samples.personas);
        let mut remarks = remark::of(&after);
        remarks.extend(
            samples
                .first_without
                .as_deref()
                .map(LintRemark::not_sampled),
        );
        Ok(Self {
            dangerous: danger::of(&changes, &after),
            remarks,
            changes,
        })
    }
}

/// The rules of the file that a rule's decision rests on: itself, and those that it refers to.
fn causes(policy: &OsloPolicy, rule: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<_> = policy.rule_id(rule).into_iter().collect();
    let mut seen = open.clone();
    while let Some(id) = open.pop() {
        if let Some(rule) = policy.rule(id) {
            found.extend(rule.origin_in_file().map(str::to_owned));
        }
        for next in policy.references(id) {
            if !seen.contains(&next) {
                seen.push(next);
                open.push(next);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}
