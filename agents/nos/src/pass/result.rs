use std::time::Duration;

use super::HeldStep;
use crate::observation::Observation;
use crate::problem::Problem;
use crate::step::Step;

/// A step that the switch did not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStep {
    /// The step.
    pub step: Step,
    /// The reason.
    pub failure: Failure,
}

/// The reason why a step is not in effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The switch refused it, with this error and its causes.
    #[error("{0}")]
    Refused(String),
    /// The switch did not answer within the time limit.
    #[error("no answer within {0:?}")]
    Stalled(Duration),
    /// The switch accepted the step, and an observation shows that it is not in effect.
    #[error("accepted, but not in effect")]
    Unverified,
}

/// The result of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The last observed state.
    pub observation: Observation,
    /// Parts of the desired state that this switch cannot have.
    pub problems: Vec<Problem>,
    /// Steps that are in effect since this pass.
    pub done: Vec<Step>,
    /// Steps that failed. Each was tried once alone.
    pub failed: Vec<FailedStep>,
    /// Steps that wait for a failed or withheld one.
    pub held: Vec<HeldStep>,
    /// Steps that the pass did not come to, because the switch stalled too often or somebody kept
    /// changing it.
    pub untried: Vec<Step>,
    /// Steps that are left, with the failed, held and withheld ones. Empty if the switch is as
    /// desired, as far as it can be.
    pub rest: Vec<Step>,
}
