//! Conditions of a claim, in the shape that Kubernetes has.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Kind of a condition.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "PascalCase")]
pub enum ClaimConditionKind {
    /// A host is bound.
    Associated,
    /// The policies admit the project.
    PolicySatisfied,
    /// The host is as the claim wants it.
    Synchronized,
    /// The image is installed.
    Provisioned,
    /// Nothing is done for the claim.
    Paused,
    /// The selector changed after the binding: the host may not fit it any more.
    SelectorDrift,
    /// It is associated, synchronized and provisioned.
    Ready,
}

impl ClaimConditionKind {
    /// Name in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimCondition {
    /// Its kind.
    pub kind: ClaimConditionKind,
    /// `true` if it holds.
    pub status: bool,
    /// One word for programs.
    pub reason: String,
    /// A sentence for people. Empty means that the reason says all.
    #[serde(default)]
    pub message: String,
    /// Time of the last change of `status`.
    pub since: Timestamp,
    /// Generation of the claim that it was judged by.
    pub generation: u64,
}
