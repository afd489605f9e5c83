use proto_types::Asn;

use super::names::PolicyName;

/// Settings of a BGP session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BgpNeighbour {
    /// AS number of the neighbour. `None` means any but ours.
    pub remote_asn: Option<Asn>,
    /// Route map for the routes that come. `None` is only observed: a desired neighbour has one.
    pub import: Option<PolicyName>,
    /// Route map for the routes that go. `None` is only observed: a desired neighbour has one.
    pub export: Option<PolicyName>,
    /// `true` if EVPN routes are exchanged.
    pub has_evpn: bool,
}

impl BgpNeighbour {
    /// A neighbour of any other AS number with its two route maps, without EVPN.
    #[must_use]
    pub fn filtered(import: PolicyName, export: PolicyName) -> Self {
        Self {
            remote_asn: None,
            import: Some(import),
            export: Some(export),
            has_evpn: false,
        }
    }

    /// Both route maps. `None` if one is missing.
    #[must_use]
    pub fn filters(&self) -> Option<[&PolicyName; 2]> {
        Some([self.import.as_ref()?, self.export.as_ref()?])
    }
}
