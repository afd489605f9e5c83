//! OpenStack's metalsmith, unchanged, deploys a machine of a project and gives it back, with nothing
//! but the project's token and the address of Ironic's API.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{is_held, show};
use crate::cli::text;
use crate::control::{certificate, ironic_url};
use crate::datacentre::DataCentre;
use crate::machine::Machine;
use crate::process::output;
use crate::python;
use crate::scenario::events::newest;
use crate::scenario::life::{Allocated, port_is_in, ssh};
use crate::scenario::setup::{IMAGE, PROVISIONING_VNI, SIZE, Site};
use crate::state::write_private;
use crate::wait::wait_for;

const PACKAGE: &str = "metalsmith==2.5.0";
/// Its program by name: the scripts of a moved environment point to where it was made.
const PROGRAM: &str = "from metalsmith._cmd import main; main()";
/// Name of the cloud in the client's file.
const CLOUD: &str = "lab";
const HOST: &str = "smith1";
const CLASS: &str = "lab";
const LAYOUT: &str = "metalsmith";
const INSTALL: Duration = Duration::from_secs(420);
const SSH_UP: Duration = Duration::from_secs(120);
const BACK: Duration = Duration::from_secs(360);

/// metalsmith, as tenant A has it.
struct Smith<'a> {
    lab: &'a DataCentre,
    environment: PathBuf,
    clouds: PathBuf,
}

pub(super) fn run(lab: &DataCentre, site: &Site) -> Result<()> {
    let environment = match python::environment(&lab.artefacts.cache, PACKAGE) {
        Ok(environment) => environment,
        Err(error) => {
            lab.time.note(&format!("not run: {error:#}"));
            return Ok(());
        }
    };
    let machine = lab.machines.first().context("the lab has no machine")?;
    let smith = Smith {
        lab,
        environment,
        clouds: clouds(lab)?,
    };
    offer(lab, site, machine)?;
    deploy(&smith, site, machine)?;
    undeploy(&smith, machine)?;
    take_back(lab, machine)
}

/// The client's file: a token and the addresses of both services, without a call of Keystone.
fn clouds(lab: &DataCentre) -> Result<PathBuf> {
    let token = fs::read_to_string(lab.people.tenant_a.config.with_file_name("token"))?;
    let url = ironic_url();
    let cloud = json!({
        "auth_type": "admin_token",
        "auth": {"token": token.trim(), "endpoint": url},
        "baremetal_endpoint_override": url,
        "network_endpoint_override": format!("{url}/v2.0"),
        "cacert": certificate(&lab.record)?,
    });
    let path = lab.record.path("drill/metalsmith/clouds.yaml")?;
    // JSON is YAML as well.
    let text = json!({"clouds": {CLOUD: cloud}}).to_string();
    write_private(&path, text.as_bytes())?;
    Ok(path)
}

impl Smith<'_> {
    /// Runs `metalsmith …`; returns the JSON that it prints.
    fn run(&self, words: &[&str]) -> Result<Value> {
        let tenant = &self.lab.people.tenant_a;
        let mut command = tenant
            .namespace
            .command(self.environment.join("bin/python"));
        command
            .args(["-c", PROGRAM, "-f", "json"])
            .args(words)
            .env("OS_CLIENT_CONFIG_FILE", &self.clouds)
            .env("OS_CLOUD", CLOUD)
            // The lab's addresses are behind no proxy.
            .env("NO_PROXY", "*")
            .env("no_proxy", "*");
        let said = || format!("metalsmith {}", words.join(" "));
        let text = output(&mut command).with_context(said)?;
        serde_json::from_str(&text).with_context(|| format!("{} printed {text:?}", said()))
    }
}

/// The part of an operator, once: the machine gets an owner and a class, its size a layout.
fn offer(lab: &DataCentre, site: &Site, machine: &Machine) -> Result<()> {
    let (admin, uuid) = (&lab.people.admin, &machine.uuid);
    let mut layout = admin.json("filesystem show default")?;
    let fields = layout.as_object_mut().context("a layout is an object")?;
    fields.remove("meta");
    fields.insert("id".to_owned(), LAYOUT.into());
    let (os, version) = IMAGE.split_once('-').context("an image has a version")?;
    let images = json!({os: format!(">= {version}")});
    let only = json!({"sizes": [SIZE], "images": images});
    fields.insert("constraints".to_owned(), only);
    let file = lab.record.path("drill/metalsmith/layout.json")?;
    fs::write(&file, layout.to_string())?;
    admin.run(&format!("filesystem create --file {}", file.display()))?;
    admin.run(&format!("machine owner set {uuid} {}", site.project_a))?;
    admin.run(&format!(
        "machine capability {uuid} --resource-class {CLASS}"
    ))?;
    Ok(())
}

fn take_back(lab: &DataCentre, machine: &Machine) -> Result<()> {
    let (admin, uuid) = (&lab.people.admin, &machine.uuid);
    admin.run(&format!("machine capability {uuid} --no-resource-class"))?;
    admin.run(&format!("machine owner clear {uuid}"))?;
    admin.run(&format!("filesystem rm {LAYOUT}"))?;
    Ok(())
}

fn deploy(smith: &Smith<'_>, site: &Site, machine: &Machine) -> Result<()> {
    let lab = smith.lab;
    let key = format!("{}.pub", site.ssh_key.display());
    let digest = &lab.artefacts.image_digest;
    let sum = digest.strip_prefix("sha256:").unwrap_or(digest);
    smith.run(&[
        "deploy",
        "--image",
        &lab.image_url,
        "--image-checksum",
        sum,
        "--resource-class",
        CLASS,
        "--network",
        &site.network_a,
        "--hostname",
        HOST,
        "--ssh-public-key",
        &key,
        "--no-wait",
    ])?;
    let home = wait_for("phoned home", INSTALL, || {
        lab.watch()?;
        let seen = show(lab, &machine.uuid)?;
        Ok((newest(&seen) == "phoned home").then_some(seen))
    })?;
    let address = text(&home, "/allocation/networks/0/ips/0")?;
    let deployed = wait_for("an active instance", SSH_UP, || {
        let shown = smith.run(&["show", HOST])?;
        let state = shown.pointer(&format!("/{HOST}/state"));
        Ok((state.and_then(Value::as_str) == Some("active")).then_some(shown))
    })?;
    ensure!(
        deployed.to_string().contains(address),
        "metalsmith does not tell {address}: {deployed}"
    );
    reach(lab, site, machine, address)
}

/// The machine has the key and the name that the client asked for.
fn reach(lab: &DataCentre, site: &Site, machine: &Machine, address: &str) -> Result<()> {
    let allocated = Allocated {
        name: HOST.to_owned(),
        uuid: machine.uuid.clone(),
        address: address.to_owned(),
        hardware: machine,
    };
    let hostname = wait_for("SSH", SSH_UP, || {
        ssh(lab, site, &allocated, "hostname").map(Some)
    })?;
    ensure!(hostname.trim() == HOST, "the host name is {hostname:?}");
    lab.time
        .note(&format!("{HOST} is {}, {address}", machine.name));
    Ok(())
}

fn undeploy(smith: &Smith<'_>, machine: &Machine) -> Result<()> {
    let lab = smith.lab;
    smith.run(&["undeploy", HOST])?;
    wait_for("the machine back in the pool", BACK, || {
        lab.watch()?;
        let seen = show(lab, &machine.uuid)?;
        let free = seen.get("allocation").is_none_or(Value::is_null);
        Ok((free && newest(&seen) == "waiting" && !is_held(&seen)).then_some(()))
    })?;
    port_is_in(lab, machine.number, PROVISIONING_VNI)?;
    let left = smith.run(&["list"])?;
    ensure!(left == json!({}), "metalsmith still lists {left}");
    Ok(())
}
