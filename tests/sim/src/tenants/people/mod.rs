//! The people of a site: tenants, owners of machines, and the administrator.

pub(crate) mod administrator;
pub(crate) mod finale;
mod leases;
pub(crate) mod owner;
mod person;
mod snoop;
pub(crate) mod tenant;
mod wishes;

pub(crate) use person::{Person, wait_until};
