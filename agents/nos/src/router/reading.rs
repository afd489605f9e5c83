use std::time::Duration;

use tokio::time::Instant;

use crate::frr::{InterfaceName, Observed, Routing};

/// Age at which a reading of FRR's configuration is repeated: a change by hand is to be seen within
/// 5 s, also during a long pass.
const AGE_MAX: Duration = Duration::from_secs(5);

/// FRR's running configuration as it was read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) observed: Observed,
    /// The meaning of the configuration.
    pub(super) routing: Routing,
    at: Instant,
}

impl Reading {
    /// A configuration that has just been read, on a switch whose loopback has this name.
    pub(super) fn new(observed: Observed, loopback: &InterfaceName) -> Self {
        Self {
            routing: Routing::from_frr_with(&observed.config, loopback),
            observed,
            at: Instant::now(),
        }
    }

    /// `true` while it stands for FRR's configuration.
    pub(super) fn is_fresh(&self) -> bool {
        self.at.elapsed() < AGE_MAX
    }
}
