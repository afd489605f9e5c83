//! Reads and changes of a resource that the tenants' and the administrators' service share.

pub(crate) mod audit;
pub(crate) mod machine;
pub(crate) mod network;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod vpn;
