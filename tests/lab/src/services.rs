//! The programs under test: control, the agents, and the image server.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::artefacts::{Artefacts, Program};
use crate::bmc::{self, Front};
use crate::chassis::Firmware;
use crate::cli::Person;
use crate::machine::Machine;
use crate::netns::Namespace;
use crate::process::{Process, output};
use crate::state::{Record, write_private};
use crate::topology::{self, Topology, bmc_address};
use crate::wait::wait_for;

pub const PARTITION: &str = "lab";
pub const SWITCH: &str = "leaf1";
/// Mesh port of control, UDP.
pub const MESH_PORT: u16 = 4443;
const IMAGE_PORT: u16 = 8081;
const PIXIE_PORT: u16 = 8080;
/// Names of the partition's kernel and initramfs on the image server.
pub const BOOT_KERNEL: &str = "hammer-kernel";
pub const BOOT_IMAGE: &str = "hammer-initramfs";
const START: Duration = Duration::from_secs(30);

/// An agent's program, namespace and way of being started.
#[derive(Clone, Debug)]
pub struct Agent {
    pub kind: &'static str,
    pub id: &'static str,
    program: PathBuf,
    namespace: Namespace,
    state_dir: PathBuf,
    ticket: PathBuf,
    config: PathBuf,
}

impl Agent {
    fn new(
        record: &Record,
        kind: &'static str,
        id: &'static str,
        program: PathBuf,
        namespace: &Namespace,
    ) -> Result<Self> {
        let path = |file: &str| record.path(&format!("agents/{kind}/{file}"));
        Ok(Self {
            kind,
            id,
            program,
            namespace: namespace.clone(),
            state_dir: path("state")?,
            ticket: path("ticket")?,
            config: path(&format!("{kind}.toml"))?,
        })
    }

    /// The fingerprint of its key; the key is made at the first call.
    ///
    /// # Errors
    /// The agent's program fails.
    pub fn key(&self) -> Result<String> {
        self.key_in(&self.state_dir)
    }

    /// The fingerprint of the key in another state directory.
    ///
    /// # Errors
    /// The agent's program fails.
    pub fn key_in(&self, state_dir: &Path) -> Result<String> {
        let mut command = self.namespace.command(&self.program);
        command.args(["key", "--state-dir"]).arg(state_dir);
        Ok(output(&mut command)?.trim().to_owned())
    }

    /// Has the admin make a ticket for exactly this agent.
    ///
    /// # Errors
    /// Control refuses.
    pub fn ticket(&self, admin: &Person) -> Result<()> {
        let key = self.key()?;
        let line = format!(
            "join create {} --partition {PARTITION} --id {} --key-sha256 {key} --out {}",
            self.kind,
            self.id,
            self.ticket.display()
        );
        admin.run(&line).map(|_| ())
    }

    /// Starts it, with the ticket that lies there.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, record: &Record) -> Result<Process> {
        self.start_as(record, self.id, &self.state_dir, &self.ticket)
    }

    /// Starts the same program under another name, with another key or ticket.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_as(
        &self,
        record: &Record,
        name: &str,
        state_dir: &Path,
        ticket: &Path,
    ) -> Result<Process> {
        let mut command = self.namespace.command(&self.program);
        command.arg("run").arg("--state-dir").arg(state_dir);
        command
            .arg("--ticket-file")
            .arg(ticket)
            .arg("--config")
            .arg(&self.config);
        command.args(["--control", &format!("{}:{MESH_PORT}", topology::CONTROL)]);
        Process::spawn(record, name, command)
    }

    #[must_use]
    pub fn ticket_file(&self) -> &Path {
        &self.ticket
    }

    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }
}

/// metalmesh-core on the leaf.
///
/// # Errors
/// Its configuration cannot be written.
pub fn core(record: &Record, topology: &Topology, artefacts: &Artefacts) -> Result<Agent> {
    let program = artefacts.program(Program::Core);
    let agent = Agent::new(record, "core", SWITCH, program, &topology.leaf)?;
    let uplinks = format!("uplinks = [\"{}\"]\n", topology::UPLINK);
    let text = core_config(topology::LEAF, topology::LEAF_VTEP) + &uplinks;
    fs::write(&agent.config, text)?;
    Ok(agent)
}

/// The same on a second leaf of the rack.
///
/// # Errors
/// Its configuration cannot be written.
pub fn other_core(record: &Record, leaf: &Namespace, artefacts: &Artefacts) -> Result<Agent> {
    let program = artefacts.program(Program::Core);
    let path = |file: &str| record.path(&format!("agents/other-core/{file}"));
    let agent = Agent {
        state_dir: path("state")?,
        ticket: path("ticket")?,
        config: path("core.toml")?,
        ..Agent::new(record, "core", topology::OTHER_SWITCH, program, leaf)?
    };
    let roots = format!("uplink_vteps = [\"{}\"]\n", topology::LEAF_VTEP);
    let text = core_config(topology::OTHER_LEAF, topology::OTHER_VTEP) + &roots;
    fs::write(&agent.config, text)?;
    Ok(agent)
}

fn core_config(address: Ipv4Addr, vtep: Ipv4Addr) -> String {
    format!(
        "rack = \"rack-1\"\nroom = \"lab\"\nmanagement_ip = \"{address}\"\nvtep = \"{vtep}\"\n\
         ports = [\"swp*\"]\ngateways = [\"{}\"]\n",
        topology::EXIT_VTEP,
    )
}

/// metalmesh-pixie on the services host. The kernel and the initramfs of its configuration do not
/// exist: a machine that boots has those that the partition names by URL.
///
/// # Errors
/// Its configuration cannot be written.
pub fn pixie(record: &Record, topology: &Topology, artefacts: &Artefacts) -> Result<Agent> {
    let program = artefacts.program(Program::Pixie);
    let agent = Agent::new(record, "pixie", "pixie1", program, &topology.services)?;
    let text = format!(
        "http_port = {PIXIE_PORT}\n[boot]\nkernel = \"/nonexistent\"\ninitrd = \"/nonexistent\"\n\
         [[network]]\ninterface = \"prov0\"\naddress = \"{pixie}\"\nsubnet = \"{}\"\n\
         range = [\"10.77.1.100\", \"10.77.1.199\"]\nrouter = \"{pixie}\"\n",
        topology::PROVISIONING,
        pixie = topology::PIXIE,
    );
    fs::write(&agent.config, text)?;
    Ok(agent)
}

/// metalmesh-bmc on the services host; the passwords go into a file of its own.
///
/// # Errors
/// Its configuration cannot be written.
pub fn bmc(
    record: &Record,
    topology: &Topology,
    artefacts: &Artefacts,
    machines: &[Machine],
) -> Result<Agent> {
    let program = artefacts.program(Program::Bmc);
    let agent = Agent::new(record, "bmc", "bmc1", program, &topology.services)?;
    let mut text = "credentials = \"credentials.toml\"\ninterval_s = 10\n".to_owned();
    let mut logins = String::new();
    for machine in machines {
        let address = bmc_address(machine.number);
        text.push_str(&format!(
            "[[bmc]]\naddress = \"{address}\"\ninterface = \"{}\"\n",
            machine.front.name()
        ));
        match machine.front {
            Front::Redfish => text.push_str(&format!(
                "redfish_port = {}\ntls_sha256 = \"{}\"\n",
                bmc::REDFISH_PORT,
                bmc::certificate_pin(record, &machine.name)?
            )),
            Front::Ipmi => {
                text.push_str(&format!("efi = {}\n", machine.firmware == Firmware::Uefi));
            }
        }
        logins.push_str(&format!(
            "[bmc.\"{address}\"]\nuser = \"{}\"\npassword = \"{}\"\n",
            bmc::USER,
            machine.password
        ));
    }
    fs::write(&agent.config, text)?;
    write_private(
        &agent.config.with_file_name("credentials.toml"),
        logins.as_bytes(),
    )?;
    Ok(agent)
}

/// Serves a directory with the image, and with the partition's kernel and initramfs, in it; returns
/// the image's URL.
///
/// # Errors
/// It does not come up.
pub fn images(record: &Record, topology: &Topology, artefacts: &Artefacts) -> Result<String> {
    let dir = record.path("images/x")?.with_file_name("");
    let name = "debian-12.tar.zst";
    for (file, name) in [
        (&artefacts.image, name),
        (&artefacts.kernel, BOOT_KERNEL),
        (&artefacts.initrd, BOOT_IMAGE),
    ] {
        // A link costs nothing, a copy a hundred megabytes.
        std::os::unix::fs::symlink(fs::canonicalize(file)?, dir.join(name))?;
    }
    let mut command = topology.services.command(record.state().program);
    command
        .args(["lab", "images"])
        .arg(&dir)
        .arg(format!("0.0.0.0:{IMAGE_PORT}"));
    let process = Process::spawn(record, "images", command)?;
    wait_for("image server", START, || {
        process.check()?;
        Ok(bmc::listening(&topology.services, "-t", IMAGE_PORT).then_some(()))
    })?;
    Ok(image_url(name))
}

/// URL of a file of the image server.
#[must_use]
pub fn image_url(name: &str) -> String {
    format!("http://{}:{IMAGE_PORT}/{name}", topology::PIXIE)
}

/// An SSH key pair for the tenant; path of the private key.
///
/// # Errors
/// ssh-keygen fails.
pub fn ssh_key(record: &Record) -> Result<PathBuf> {
    let path = record.path("tenant-a/ssh_key")?;
    let mut command = std::process::Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "tenant-a", "-f"])
        .arg(&path);
    output(&mut command).context("cannot make an SSH key")?;
    Ok(path)
}
