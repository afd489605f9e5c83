//! Node allocations: machines that are held by resource class, traits and owner before they are
//! installed, as Ironic has them. The use of a machine by a project is `machine::entity::Allocation`.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
