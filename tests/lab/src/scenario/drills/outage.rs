//! Control goes away at the worst moment.

use anyhow::Result;

use super::{must_survive, recover};
use crate::datacentre::DataCentre;
use crate::scenario::setup::Site;

pub(super) fn control_killed(lab: &DataCentre, site: &Site) -> Result<()> {
    let uuid = must_survive(lab, site, |_| {
        lab.control.kill()?;
        lab.time.note("control is killed with SIGKILL");
        crate::control::restart(lab)?;
        lab.time.note("control is back");
        Ok(())
    })?;
    recover(lab, &uuid)
}
