//! Checks in their compiled form.

use super::operand::ComparedValue;
use super::rule::RuleId;
use crate::match_value::MatchValue;

/// Index of a node in its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckNodeId(u32);

/// A node of a compiled check string.
#[derive(Debug)]
pub(super) enum CheckNode {
    Always,
    /// Nobody, and references to rules that do not exist.
    Never,
    /// Another rule.
    Rule(RuleId),
    /// A role of the caller, in lower case.
    Role(MatchValue),
    /// `left` is `right`.
    Compare {
        left: ComparedValue,
        right: MatchValue,
    },
    Not(CheckNodeId),
    All(Box<[CheckNodeId]>),
    Any(Box<[CheckNodeId]>),
}

impl CheckNodeId {
    /// Nodes are bounded by the bytes of a file, far below `u32::MAX`.
    pub(super) fn of(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX))
    }

    pub(super) fn place(self) -> usize {
        self.0 as usize
    }
}
