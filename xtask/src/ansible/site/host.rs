//! A host of the lab: a Debian with systemd in namespaces of its own.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tests_lab::cgroup;
use tests_lab::netns::Namespace;
use tests_lab::process::{Process, output};
use tests_lab::state::Record;
use tests_lab::wait::wait_for;

/// From process 1 to an answer by SSH, on an idle machine.
const BOOT: Duration = Duration::from_secs(60);
/// Puts itself into the control group of the first argument and becomes the rest.
const ENTER: &str = r#"echo $$ >"$0/cgroup.procs" && exec "$@""#;

/// The parts that every host is made of.
#[derive(Clone, Debug)]
pub(super) struct HostKit {
    /// The tree that no host changes.
    pub(super) base: PathBuf,
    /// The script that boots a host.
    pub(super) script: PathBuf,
    /// Private SSH key of the controller; the public one is beside it.
    pub(super) key: PathBuf,
    /// Where the controller is.
    pub(super) admin: Namespace,
}

/// Name, address and place in the network of a host.
#[derive(Clone, Debug)]
pub(super) struct HostPlace {
    pub(super) name: &'static str,
    pub(super) address: Ipv4Addr,
    pub(super) namespace: Namespace,
    /// `true` if FRR runs on it.
    pub(super) has_frr: bool,
}

/// A host that runs.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) place: HostPlace,
    kit: HostKit,
    /// Below it is what the host has changed.
    dir: PathBuf,
    group: PathBuf,
    pub(super) process: Process,
}

impl Host {
    /// Boots an empty host, and does not wait for it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn boot(record: &Record, kit: &HostKit, place: HostPlace) -> Result<Self> {
        let dir = record.path(&format!("hosts/{}/x", place.name))?;
        let dir = dir.with_file_name("");
        let group = cgroup::create(record, place.name)?;
        furnish(&dir.join("upper"), kit, &place)?;
        let process = start(record, kit, &place, &dir, &group)?;
        Ok(Self {
            place,
            kit: kit.clone(),
            dir,
            group,
            process,
        })
    }

    /// Waits until it answers by SSH and systemd has started everything.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn wait(&self) -> Result<()> {
        wait_for(&format!("{} by SSH", self.place.name), BOOT, || {
            self.process.check()?;
            self.ssh("true").map(Some)
        })?;
        // It fails if a unit has failed, which is told by its name.
        self.ssh("systemctl is-system-running --wait || { systemctl --failed --no-legend; false; }")
            .with_context(|| format!("{} did not start whole", self.place.name))
            .map(drop)
    }

    /// Takes its power and its disk away, and boots an empty host in its place.
    ///
    /// # Errors
    /// It does not end, or cannot be started again.
    pub(super) fn rebuild(&mut self, record: &Record) -> Result<()> {
        self.process.kill()?;
        // Its processes end with its process 1, but not in the same moment.
        wait_for("the end of the host", BOOT, || {
            let pids = Command::new("ip")
                .args(["netns", "pids", self.place.namespace.name()])
                .output()?;
            Ok(pids.stdout.is_empty().then_some(()))
        })?;
        fs::remove_dir_all(&self.dir)?;
        // With controllers no process may enter a group that has others inside, as the old one does.
        self.group = cgroup::create(record, &format!("{}-again", self.place.name))?;
        furnish(&self.dir.join("upper"), &self.kit, &self.place)?;
        self.process = start(record, &self.kit, &self.place, &self.dir, &self.group)?;
        self.wait()
    }

    /// Runs a line of the shell on the host as root; what it printed.
    ///
    /// # Errors
    /// The text of its standard error.
    pub(super) fn ssh(&self, line: &str) -> Result<String> {
        let mut command = self.kit.admin.command("ssh");
        command.arg("-i").arg(&self.kit.key);
        for option in [
            "BatchMode=yes",
            "ConnectTimeout=5",
            "IdentitiesOnly=yes",
            "LogLevel=ERROR",
            // The network is the lab's own, and a host that is made again has another key.
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
        ] {
            command.args(["-o", option]);
        }
        let who = format!("root@{}", self.place.address);
        let said = output(command.args(["-F", "/dev/null"]).arg(who).arg(line));
        said.with_context(|| format!("{}: {line}", self.place.name))
    }
}

/// Writes the files that tell a host from the others: name, machine id, keys, and who may come in.
fn furnish(upper: &Path, kit: &HostKit, place: &HostPlace) -> Result<()> {
    let etc = upper.join("etc");
    let ssh = upper.join("root/.ssh");
    for folder in [&etc.join("ssh"), &ssh] {
        fs::create_dir_all(folder)?;
    }
    // The overlay shows the modes of these directories, and sshd judges them.
    for folder in [&upper.join("root"), &ssh] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    let name = place.name;
    fs::write(etc.join("hostname"), format!("{name}\n"))?;
    let hosts = format!("127.0.0.1 localhost\n{} {name}\n", place.address);
    fs::write(etc.join("hosts"), hosts)?;
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    fs::write(etc.join("machine-id"), id.replace('-', ""))?;
    fs::copy(kit.key.with_extension("pub"), ssh.join("authorized_keys"))?;
    make_key(&etc.join("ssh/ssh_host_ed25519_key"))?;
    if place.has_frr {
        let wants = etc.join("systemd/system/multi-user.target.wants");
        fs::create_dir_all(&wants)?;
        let unit = "/lib/systemd/system/frr.service";
        std::os::unix::fs::symlink(unit, wants.join("frr.service"))?;
    }
    Ok(())
}

/// Makes an SSH key without a passphrase.
pub(super) fn make_key(path: &Path) -> Result<()> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f"]);
    output(command.arg(path)).context("cannot make an SSH key")?;
    Ok(())
}

fn start(
    record: &Record,
    kit: &HostKit,
    place: &HostPlace,
    dir: &Path,
    group: &Path,
) -> Result<Process> {
    // The groups are not to be seen where `ip netns exec` has mounted another /sys.
    let mut command = Command::new("sh");
    command.args(["-c", ENTER]).arg(group);
    command.args(["ip", "netns", "exec", place.namespace.name(), "unshare"]);
    command.args([
        "--mount",
        "--uts",
        "--ipc",
        "--cgroup",
        "--pid",
        "--fork",
        "--kill-child=SIGKILL",
    ]);
    command.arg("sh").arg(&kit.script);
    command.arg(&kit.base).arg(dir).arg(place.name);
    Process::spawn(record, place.name, command)
}
