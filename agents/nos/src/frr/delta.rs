//! A change of FRR, in steps.

use super::object::FrrObject;
use super::refresh::Refresh;

/// Lines that change one object, to be entered in configuration mode. They leave every section
/// that they enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The object.
    pub object: FrrObject,
    /// The lines, without line ends.
    pub lines: Vec<String>,
}

/// A change of FRR: steps in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrrDelta {
    /// The steps. Empty means that nothing is to be done.
    pub blocks: Vec<Block>,
    /// Peers whose routes FRR must judge again after the steps, since a filter's content changed.
    /// It does so by itself too, after its `route-map delay-timer` of 5 s.
    pub refresh: Vec<Refresh>,
}

impl Block {
    /// `true` if FRR may load these lines in bulk, where it goes on after one that it refuses:
    /// filters and VRFs, which let nothing through by themselves. A neighbour must not go on
    /// without the filter that FRR has just refused.
    pub(super) fn is_loadable(&self) -> bool {
        matches!(
            self.object,
            FrrObject::Vrf(_)
                | FrrObject::PrefixList(_)
                | FrrObject::Ipv6PrefixList(_)
                | FrrObject::RouteMap(_)
        )
    }
}

impl FrrDelta {
    /// `true` if nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}
