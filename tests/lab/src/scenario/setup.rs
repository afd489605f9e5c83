//! An empty cluster becomes a site: catalogue, agents, tenants.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cli::{Person, text};
use crate::datacentre::DataCentre;
use crate::services::{PARTITION, SWITCH, ssh_key};
use crate::topology::TENANTS;
use crate::wait::wait_for;

pub(crate) const SIZE: &str = "small";
pub(crate) const IMAGE: &str = "debian-12.0";
/// The provisioning segment of the lab's partition.
pub(crate) const PROVISIONING_VNI: u64 = 4000;
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
    let control = lab.control.log();
    let admin = &lab.people.admin;
    lab.time.step(
        "admin: partition, size, image, super network",
        control,
        || catalogue(lab),
    )?;
    lab.time
        .step("agents join by ticket: switch, BMC, pixie", control, || {
            join_agents(lab)
        })?;
    lab.time
        .step("admin: tenants, projects, tokens", control, || {
            for (person, tenant) in [
                (&lab.people.tenant_a, "tenant-a"),
                (&lab.people.tenant_b, "tenant-b"),
            ] {
                tenant_with_project(lab, person, tenant)?;
            }
            Ok(())
        })?;
    let key = ssh_key(&lab.record)?;
    lab.time.step("tenant A: network", control, || {
        let network = lab.people.tenant_a.json(&[
            "network",
            "create",
            "--name",
            "private",
            "--partition",
            PARTITION,
        ])?;
        let id = text(&network, "/id")?.to_owned();
        let prefix = text(&network, "/prefixes/0")?.to_owned();
        let vni = vrf(&admin.json(&["network", "show", &id])?)?;
        lab.topology.open_segment(vni, &prefix)?;
        lab.time.note(&format!("network {id}: {prefix}, VNI {vni}"));
        let project_a = text(&network, "/project")?.to_owned();
        Ok(Site {
            project_a,
            network_a: id,
            prefix_a: prefix,
            vni_a: vni,
            ssh_key: key,
        })
    })
}

fn vrf(network: &Value) -> Result<u32> {
    let vrf = network
        .get("vrf")
        .and_then(Value::as_u64)
        .context("the network has no VRF")?;
    Ok(u32::try_from(vrf)?)
}

fn catalogue(lab: &DataCentre) -> Result<()> {
    let admin = &lab.people.admin;
    let label = format!("metalmesh.dev/provisioning-vni={PROVISIONING_VNI}");
    admin.run(&["partition", "create", PARTITION, "--label", &label])?;
    admin.run(&[
        "size",
        "create",
        SIZE,
        "--constraint",
        "cores=1-4",
        "--constraint",
        "memory=256Mi-4Gi",
        "--constraint",
        "storage=1Gi-100Gi",
    ])?;
    admin.run(&[
        "image",
        "create",
        IMAGE,
        "--url",
        &lab.image_url,
        "--digest",
        &lab.artefacts.image_digest,
    ])?;
    admin.run(&[
        "network",
        "create",
        "--type",
        "super",
        "--id",
        "tenants",
        "--partition",
        PARTITION,
        "--prefix",
        TENANTS,
        "--destination",
        "0.0.0.0/0",
        "--child-length-v4",
        "24",
    ])?;
    Ok(())
}

fn join_agents(lab: &DataCentre) -> Result<()> {
    let admin = &lab.people.admin;
    for agent in &lab.agents {
        agent.ticket(admin)?;
        let process = agent.start(&lab.record)?;
        lab.time.note(&format!(
            "{} {} has a ticket for its key and starts",
            agent.kind, agent.id
        ));
        process.check()?;
    }
    wait_for("all tickets redeemed", JOIN, || {
        for agent in &lab.agents {
            crate::process::Process::existing(&lab.record, agent.id)
                .context("no process")?
                .check()?;
        }
        let tickets = admin.json(&["join", "ls"])?;
        let used = |t: &Value| t.get("redeemedAt").is_some_and(|at| !at.is_null());
        let redeemed = tickets
            .as_array()
            .map_or(0, |all| all.iter().filter(|t| used(t)).count());
        Ok((redeemed == lab.agents.len()).then_some(()))
    })?;
    wait_for("the switch's registration", JOIN, || {
        let switch = admin.json(&["switch", "show", SWITCH])?;
        Ok(switch.get("nics").is_some().then_some(()))
    })
}

/// A tenant, its project, and a context with a token for that project only.
fn tenant_with_project(lab: &DataCentre, person: &Person, tenant: &str) -> Result<()> {
    let admin = &lab.people.admin;
    // The server makes the login; the name is what people call it.
    let made = admin.json(&["tenant", "create", tenant])?;
    let login = text(&made, "/login")?.to_owned();
    let project = admin.json(&[
        "project",
        "create",
        &format!("{tenant}-p"),
        "--tenant",
        &login,
    ])?;
    let project = text(&project, "/uuid")?.to_owned();
    let file = person.config.with_file_name("token");
    let out = file.display().to_string();
    let role = format!("{project}=editor");
    admin.run(&[
        "token",
        "create",
        "--user",
        &login,
        "--project-role",
        &role,
        "--out",
        &out,
        "--description",
        "lab",
    ])?;
    crate::control::add_context(&lab.record, person, &file, Some(&project))
}
