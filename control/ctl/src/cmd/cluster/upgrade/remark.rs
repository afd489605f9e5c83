//! A remark on an upgrade: what is wrong, why that matters, and what mends it.

use serde::Serialize;

/// A remark. In a plan's obstacles it forbids the upgrade, in its notes it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct UpgradeRemark {
    pub(super) what: String,
    /// Its consequence.
    pub(super) why: String,
    /// The command that mends it, or the remedy in words.
    pub(super) mend: String,
}

impl UpgradeRemark {
    pub(super) fn new(
        what: impl Into<String>,
        why: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            mend: mend.into(),
        }
    }
}
