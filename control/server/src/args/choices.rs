//! Values of the flags of the first start.

use clap::ValueEnum;

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// A group of checks of the host, before anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetupCheck {
    /// The clock is synchronised.
    Clock,
    /// The disk of the data directory: latency of a sync, free space, file system.
    Disk,
    /// The addresses that the node listens on, and those that others reach it at.
    Addresses,
    /// The files of the API's certificate.
    Certificate,
}

impl SetupCheck {
    /// Its name on the command line and in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Disk => "disk",
            Self::Addresses => "addresses",
            Self::Certificate => "certificate",
        }
    }
}
