use std::time::Duration;

use super::phase::UpdatePhase;
use super::wanted::WantedRelease;

/// The facts that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct UpdateFacts<'a> {
    /// Time since the start of the agent.
    pub now: Duration,
    /// `true` if self-update is enabled.
    pub is_enabled: bool,
    /// The release that the source names.
    pub wanted: Option<&'a WantedRelease>,
    /// `true` if the configuration is valid, the agent does its work, and the source answers.
    pub is_healthy: bool,
    /// The reason of a trial that ends without a confirmation.
    pub unhealthy: &'static str,
    /// Pause before a new version is fetched.
    pub delay: Duration,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateStep {
    /// Nothing has to be done.
    Wait(UpdatePhase),
    /// The release has to be fetched, verified and stored.
    Fetch(WantedRelease),
    /// The new program is good.
    Confirm,
    /// The new program is not good, for this reason.
    GiveUp(String),
}
