//! An empty cluster becomes a site: catalogue, agents, tenants.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cli::{Person, text};
use crate::control::add_context;
use crate::datacentre::DataCentre;
use crate::process::Process;
use crate::services::{BOOT_IMAGE, BOOT_KERNEL, PARTITION, SWITCH, image_url, ssh_key};
use crate::topology::TENANTS;
use crate::wait::wait_for;

pub(crate) const SIZE: &str = "small";
pub(crate) const IMAGE: &str = "debian-12.0";
/// Servers of the partition, which are in the machines' settings; none answers.
pub(crate) const DNS_SERVER: &str = "192.0.2.53";
pub(crate) const NTP_SERVER: &str = "192.0.2.123";
/// The provisioning segment of the lab's partition.
pub(crate) const PROVISIONING_VNI: u64 = 4000;
/// Kernel command line of the partition's installer: a serial console, what keeps slow virtual
/// machines alive, and a word that nothing else has.
const COMMANDLINE: &str = "console=ttyS0,115200n8 no_timer_check panic=30 lab.partition=named";
/// The word in the log of a kernel that was started with that line.
pub(crate) const COMMANDLINE_WORD: &str = "lab.partition=named";
const JOIN: Duration = Duration::from_secs(30);

/// What was set up.
#[derive(Clone, Debug)]
pub struct Site {
    pub project_a: String,
    pub network_a: String,
    /// Prefix of tenant A's network.
    pub prefix_a: String,
    pub vni_a: u32,
    pub ssh_key: PathBuf,
}

/// Catalogue, agents and tenants, all through the command line.
///
/// # Errors
/// The step that failed.
pub(crate) fn run(lab: &DataCentre) -> Result<Site> {
    let (time, control) = (&lab.time, lab.control.log());
    time.step(
        "admin: partition, size, image, super network",
        control,
        || catalogue(lab),
    )?;
    time.step("agents join by ticket: switch, BMC, pixie", control, || {
        join_agents(lab)
    })?;
    tenants(lab)
}

/// The tenants with their projects, and the network of the first.
///
/// # Errors
/// The step that failed.
pub(crate) fn tenants(lab: &DataCentre) -> Result<Site> {
    let (time, people, control) = (&lab.time, &lab.people, lab.control.log());
    time.step("admin: tenants, projects, tokens", control, || {
        tenant_with_project(lab, &people.tenant_a)?;
        tenant_with_project(lab, &people.tenant_b)
    })?;
    time.step("tenant A: network, SSH key", control, || network(lab))
}

fn catalogue(lab: &DataCentre) -> Result<()> {
    let admin = &lab.people.admin;
    let (boot_kernel, boot_image) = (image_url(BOOT_KERNEL), image_url(BOOT_IMAGE));
    let partition = format!(
        "partition create {PARTITION} --label metalmesh.dev/provisioning-vni={PROVISIONING_VNI} \
         --dns {DNS_SERVER} --ntp {NTP_SERVER} \
         --boot-kernel {boot_kernel} --boot-image {boot_image} --boot-cmdline"
    );
    let words: Vec<&str> = partition.split_whitespace().chain([COMMANDLINE]).collect();
    admin.run_words(&words)?;
    admin.run(&format!(
        "size create {SIZE} --constraint cores=1-4 --constraint memory=256Mi-4Gi \
         --constraint storage=1Gi-100Gi"
    ))?;
    image(lab)?;
    admin.run(&format!(
        "network create --type super --id tenants --partition {PARTITION} --prefix {TENANTS} \
         --destination 0.0.0.0/0 --child-length-v4 24"
    ))?;
    Ok(())
}

/// The image without its digest, as published clients make it: control reads it and pins what it
/// finds.
fn image(lab: &DataCentre) -> Result<()> {
    let (url, digest) = (&lab.image_url, &lab.artefacts.image_digest);
    let made = lab
        .people
        .admin
        .json(&format!("image create {IMAGE} --url {url}"))?;
    let label = |key: &str| text(&made, &format!("/meta/labels/labels/metalmesh.dev~1{key}"));
    let (found, source) = (label("digest")?, label("digest-source")?);
    ensure!(
        found == digest && source == "fetched",
        "control found {found} ({source}), the image has {digest}"
    );
    Ok(())
}

fn join_agents(lab: &DataCentre) -> Result<()> {
    let admin = &lab.people.admin;
    for agent in &lab.agents {
        agent.ticket(admin)?;
        agent.start(&lab.record)?;
        let (kind, id) = (agent.kind, agent.id);
        lab.time
            .note(&format!("{kind} agent {id}: a ticket for its key, started"));
    }
    wait_for("all tickets redeemed", JOIN, || {
        for agent in &lab.agents {
            Process::existing(&lab.record, agent.id)
                .context("no process")?
                .check()?;
        }
        let tickets = admin.json("join ls")?;
        let used = |t: &&Value| t.get("redeemedAt").is_some_and(|at| !at.is_null());
        let redeemed = tickets
            .as_array()
            .map_or(0, |all| all.iter().filter(used).count());
        Ok((redeemed == lab.agents.len()).then_some(()))
    })?;
    wait_for("the switch's registration", JOIN, || {
        let switch = admin.json(&format!("switch show {SWITCH}"))?;
        Ok(switch.get("nics").map(|_| ()))
    })
}

/// A tenant, its project, and a context with a token for that project only.
fn tenant_with_project(lab: &DataCentre, person: &Person) -> Result<()> {
    let (admin, name) = (&lab.people.admin, person.name);
    let made = admin.json(&format!("tenant create {name}"))?;
    // The name is what people call it, the login is what the API goes by.
    let login = text(&made, "/login")?;
    let project = admin.json(&format!("project create {name}-project --tenant {login}"))?;
    let project = text(&project, "/uuid")?;
    let file = person.config.with_file_name("token");
    admin.run(&format!(
        "token create --description lab --user {login} --project-role {project}=editor --out {}",
        file.display()
    ))?;
    add_context(&lab.record, person, &file, Some(project))
}

fn network(lab: &DataCentre) -> Result<Site> {
    let command = format!("network create --name private --partition {PARTITION}");
    let network = lab.people.tenant_a.json(&command)?;
    let id = text(&network, "/id")?.to_owned();
    let prefix = text(&network, "/prefixes/0")?.to_owned();
    let vrf = lab.people.admin.json(&format!("network show {id}"))?;
    let vrf = vrf
        .get("vrf")
        .and_then(Value::as_u64)
        .context("the network has no VRF")?;
    let vni = u32::try_from(vrf)?;
    lab.topology.open_segment(vni, &prefix)?;
    lab.time.note(&format!("network {id}: {prefix}, VNI {vni}"));
    Ok(Site {
        project_a: text(&network, "/project")?.to_owned(),
        network_a: id,
        prefix_a: prefix,
        vni_a: vni,
        ssh_key: ssh_key(&lab.record)?,
    })
}
