//! Holds of hosts, as flags name them.

use clap::{Args, ValueEnum};

/// The holder of a host's power.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum HoldActorArg {
    Admin,
    Remediation,
    Maintenance,
}

#[derive(Debug, Args)]
pub(crate) struct HostHoldArgs {
    /// The holder: each ends its own holds only.
    #[arg(long = "as", default_value = "admin", ignore_case = true)]
    pub(super) actor: HoldActorArg,
    /// Key of the hold.
    #[arg(long, default_value = "cli")]
    pub(super) key: String,
}

impl HoldActorArg {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Remediation => "remediation",
            Self::Maintenance => "maintenance",
        }
    }
}
