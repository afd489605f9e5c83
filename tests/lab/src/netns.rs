//! Network namespaces and what is in them, through iproute2.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::state::{ProcessId, Record};

/// The user's own context is not the lab's.
const NOT_OURS: [&str; 3] = [
    "METALMESH_CONFIG",
    "METALMESH_API_URL",
    "METALMESH_TOKEN_FILE",
];

/// A network namespace of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(String);

impl Namespace {
    /// Makes it, recorded first.
    ///
    /// # Errors
    /// No right to make one, or the state cannot be written.
    pub fn create(record: &Record, name: &str) -> Result<Self> {
        let full = format!("mm-{}-{name}", record.state().id);
        record.update(|s| s.namespaces.push(full.clone()))?;
        run("ip", &["netns", "add", &full])?;
        let namespace = Self(full);
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// One that exists already.
    #[must_use]
    pub fn existing(record: &Record, name: &str) -> Self {
        Self(format!("mm-{}-{name}", record.state().id))
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Path that a thread or process enters it by.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/run/netns/{}", self.0)
    }

    /// `ip -n <this> …`, the arguments separated by spaces.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn ip(&self, arguments: &str) -> Result<()> {
        let mut all = vec!["-n", self.0.as_str()];
        all.extend(arguments.split(' '));
        run("ip", &all)
    }

    /// Sets a sysctl of this namespace.
    ///
    /// # Errors
    /// No such sysctl.
    pub fn sysctl(&self, setting: &str) -> Result<()> {
        let output = self.command("sysctl").args(["-qw", setting]).output()?;
        check(&format!("sysctl {setting}"), &output)
    }

    /// A program to run in here.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.0])
            .arg(program.as_ref())
            .stdin(Stdio::null());
        for name in NOT_OURS {
            command.env_remove(name);
        }
        command
    }

    /// Moves the calling thread in here, for good.
    ///
    /// # Errors
    /// The namespace is gone.
    pub fn enter(&self) -> Result<()> {
        enter(&self.path())
    }
}

/// Moves the calling thread into the namespace of that path, for good.
///
/// # Errors
/// The namespace is gone.
pub fn enter(path: &str) -> Result<()> {
    let file = std::fs::File::open(path).with_context(|| format!("no namespace {path}"))?;
    nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET)?;
    Ok(())
}

/// A cable between two namespaces; both ends come up.
///
/// # Errors
/// What `ip` says.
pub fn cable(a: &Namespace, port_a: &str, b: &Namespace, port_b: &str) -> Result<()> {
    a.ip(&format!(
        "link add {port_a} type veth peer name {port_b} netns {}",
        b.0
    ))?;
    a.ip(&format!("link set {port_a} up"))?;
    b.ip(&format!("link set {port_b} up"))
}

pub(crate) fn processes(namespace: &str) -> Vec<ProcessId> {
    let Ok(output) = Command::new("ip")
        .args(["netns", "pids", namespace])
        .output()
    else {
        return Vec::new();
    };
    let pids = String::from_utf8_lossy(&output.stdout);
    let pids = pids.split_whitespace().filter_map(|p| p.parse().ok());
    pids.filter_map(|pid| ProcessId::of("in namespace", pid).ok())
        .collect()
}

pub(crate) fn delete(namespace: &str) -> Result<()> {
    if !std::path::Path::new("/run/netns").join(namespace).exists() {
        return Ok(());
    }
    run("ip", &["netns", "del", namespace])
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    check(&format!("{program} {}", arguments.join(" ")), &output)
}

fn check(what: &str, output: &std::process::Output) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    bail!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim())
}
