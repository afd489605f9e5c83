//! The machine of the site: from the rack to a tenant.

use anyhow::{Context as _, Result};
use tests_lab::datacentre::{DataCentre, InstalledSite};
use tests_lab::scenario;

use super::place::{SitePlace, token_file};

/// A machine is found by its BMC, boots the package's installer, goes to a tenant and phones home.
pub(super) fn phone_home(site: &mut SitePlace) -> Result<()> {
    let control = site.control_hosts().next().context("no control host")?;
    let installed = InstalledSite {
        record: site.record.clone(),
        time: site.time(),
        topology: site.topology.clone(),
        machine: site.machine.clone(),
        accelerator: site.accelerator,
        control: control.process.clone(),
        admin_token: token_file(&site.record)?,
    };
    let lab = DataCentre::of_site(installed, &site.artefacts)?;
    // The image is on a server that runs from here on.
    let url = format!("lab_image_url={}", lab.image_url);
    site.controller
        .play("images.yml", &["--extra-vars", &url])?;
    scenario::phone_home(&lab)
}
