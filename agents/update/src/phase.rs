use serde::{Deserialize, Serialize};

/// The role of the program that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramRole {
    /// The image's, or an operator's.
    Installed,
    /// A release that has confirmed itself.
    Confirmed,
    /// A release that has to confirm itself.
    Trial,
    /// A release that somebody started by hand. It updates nothing.
    Stray,
}

/// The phase of self-update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdatePhase {
    /// It is disabled.
    Off,
    /// The source names no version, or one that cannot be used.
    NothingWanted,
    /// The wanted release runs.
    Current,
    /// The wanted release is fetched after a random pause.
    Scheduled,
    /// The wanted release waits until the agent does its work and hears its source.
    Unhealthy,
    /// The wanted release is fetched, verified and probed.
    Fetching,
    /// The wanted release could not be fetched, or broke a rule. It is tried again.
    Failed,
    /// The wanted release runs, and has to confirm itself.
    Trial,
    /// The wanted release did not confirm itself. It is not tried again.
    Refused,
}

impl UpdatePhase {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Off,
        Self::NothingWanted,
        Self::Current,
        Self::Scheduled,
        Self::Unhealthy,
        Self::Fetching,
        Self::Failed,
        Self::Trial,
        Self::Refused,
    ];

    /// The name in reports and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NothingWanted => "nothing_wanted",
            Self::Current => "current",
            Self::Scheduled => "scheduled",
            Self::Unhealthy => "unhealthy",
            Self::Fetching => "fetching",
            Self::Failed => "failed",
            Self::Trial => "trial",
            Self::Refused => "refused",
        }
    }
}
