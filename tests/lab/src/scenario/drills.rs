//! Faults on purpose: each ends with a reason that the admin sees, and a machine that recovers
//! or is held.

use anyhow::Result;

use crate::datacentre::DataCentre;

/// One drill.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&DataCentre) -> Result<()>,
}

/// Every drill.
pub const DRILLS: &[Drill] = &[];
