//! Why a claim waits, and its place in the queue.

use proto_types::Digest;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Why a claim waits. No reason tells of anything that the project may not claim.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "PascalCase")]
pub enum PendingReason {
    /// It was not looked at yet.
    #[default]
    Queued,
    /// No pool admits the project, or none that the claim names.
    NoPolicy,
    /// No host has the labels, or each has a taint that the claim does not tolerate.
    NoMatch,
    /// Hosts match, and others have them or they are not ready.
    AllBusy,
    /// Hosts match, and the quota of the project or its tenant is used up.
    QuotaExceeded,
    /// The host of an earlier claim is being wiped.
    WaitingForReuse,
    /// Hosts match, and none of those in the failure domain is free.
    FailureDomainFull,
    /// Hosts match, and all of them are out of service.
    Cordoned,
    /// An earlier claim of the project that asks for the same waits too.
    BehindEarlierClaim,
    /// The claim is paused.
    Paused,
    /// The cluster was restored from a backup, and its operator did not reconcile it yet.
    NotReconciled,
}

impl PendingReason {
    /// Name in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// A sentence for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Queued => "it was not looked at yet",
            Self::NoPolicy => "no pool that it may use admits the project",
            Self::NoMatch => "no host that the project may claim fits it",
            Self::AllBusy => "every host that fits it is in use or not ready",
            Self::QuotaExceeded => "the quota is used up",
            Self::WaitingForReuse => "the host of an earlier claim is not ready yet",
            Self::FailureDomainFull => "no host in the failure domain is free",
            Self::Cordoned => "every host that fits it is out of service",
            Self::BehindEarlierClaim => "an earlier claim that asks for the same waits too",
            Self::Paused => "it is paused",
            Self::NotReconciled => "the cluster was restored and is not reconciled yet",
        }
    }
}

/// The queue entry of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimQueue {
    /// SHA-256 over everything that decides which hosts fit the claim: claims of a project with the
    /// same value are served in order.
    pub class: Digest,
    /// Number in the order of arrival, over all claims.
    pub number: u64,
    /// Why it waits.
    #[serde(default)]
    pub reason: PendingReason,
    /// Number of hosts that fit and that the project may claim, free or not.
    #[serde(default)]
    pub matching: u32,
}
