use std::time::Duration;

/// How often each fault occurs, in percent of the calls that it can occur in.
#[derive(Clone, Copy, Debug)]
pub struct FaultRates {
    /// A step is refused.
    pub fails: u8,
    /// A step is answered late, done or not.
    pub stalls: u8,
    /// Duration of a stall.
    pub stall: Duration,
    /// A step is done, and answered with an error.
    pub unanswered: u8,
    /// A step is answered without error, and not done.
    pub ignored: u8,
    /// A change is lost before an observation.
    pub lost: u8,
    /// An observation is the one before.
    pub stale: u8,
}

impl FaultRates {
    /// No faults.
    pub const NONE: Self = Self {
        fails: 0,
        stalls: 0,
        stall: Duration::ZERO,
        unanswered: 0,
        ignored: 0,
        lost: 0,
        stale: 0,
    };
}

/// The fault of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepFault {
    /// It is refused.
    Fails,
    /// It is done after a pause.
    StallsBefore(Duration),
    /// It is done, and answered after a pause.
    StallsAfter(Duration),
    /// It is done, and answered with an error.
    Unanswered,
    /// It is answered without error, and not done.
    Ignored,
}
