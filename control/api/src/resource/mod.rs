//! What the tenants' and the administrators' service of a resource have in common.

pub(crate) mod audit;
pub(crate) mod machine;
pub(crate) mod network;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod vpn;
