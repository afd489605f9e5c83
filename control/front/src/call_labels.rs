//! Labels of the metrics of calls.

use prometheus_client::encoding::EncodeLabelSet;

/// Label of the durations: a method of the contract, from a fixed set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Called {
    pub(super) method: &'static str,
}

/// Labels of the counter of ended calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct EndedCall {
    pub(super) method: &'static str,
    pub(super) code: &'static str,
}

/// Label of the counter of refused calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Refused {
    pub(super) reason: &'static str,
}
