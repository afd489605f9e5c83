//! A router in a network namespace, with a private host and a host outside.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, setns};

/// Addresses of the private host and of the host outside.
pub(crate) const INSIDE: &str = "10.0.0.2";
pub(crate) const OUTSIDE: &str = "203.0.113.2";

/// A network namespace that goes away with the value.
#[derive(Debug)]
pub(crate) struct Namespace(String);

/// The three namespaces, cabled.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) inside: Namespace,
    pub(crate) router: Namespace,
    pub(crate) outside: Namespace,
}

impl Namespace {
    fn new(name: &str) -> Result<Self> {
        let name = format!("mmbench{}-{name}", std::process::id());
        execute("ip", &["netns", "add", &name])?;
        let made = Self(name);
        made.ip("link set lo up")?;
        Ok(made)
    }

    /// Runs `ip` in the namespace.
    fn ip(&self, arguments: &str) -> Result<()> {
        let mut all = vec!["-n", self.0.as_str()];
        all.extend(arguments.split(' '));
        execute("ip", &all)
    }

    /// Runs a program in the namespace and returns its output.
    pub(crate) fn execute(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = self.command(arguments).output().context("cannot run ip")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {errors}");
        Ok(output.stdout)
    }

    /// A program that begins in the namespace.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(arguments);
        command
    }

    /// Runs work on a thread of its own inside the namespace.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let path = format!("/run/netns/{}", self.0);
        let enter = move || {
            let file = std::fs::File::open(path)?;
            setns(file, CloneFlags::CLONE_NEWNET)?;
            work()
        };
        let joined = std::thread::scope(|scope| scope.spawn(enter).join());
        joined.map_err(|_| anyhow::anyhow!("a thread of the bench panicked"))?
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = execute("ip", &["netns", "del", &self.0]) {
            eprintln!("{} stays: {error:#}", self.0);
        }
    }
}

impl Place {
    pub(crate) fn new() -> Result<Self> {
        let made = Self {
            inside: Namespace::new("in")?,
            router: Namespace::new("fw")?,
            outside: Namespace::new("out")?,
        };
        // A veth may have the name that the interface of a VRF has on a firewall.
        for (host, port, own) in [
            (&made.inside, "vrf42", "10.0.0"),
            (&made.outside, "vrf104", "203.0.113"),
        ] {
            let peer = &host.0;
            let router = &made.router;
            router.ip(&format!(
                "link add {port} type veth peer name eth0 netns {peer}"
            ))?;
            for (at, link, number) in [(router, port, 1), (host, "eth0", 2)] {
                at.ip(&format!("addr add {own}.{number}/24 dev {link}"))?;
                at.ip(&format!("link set {link} up"))?;
            }
            host.ip(&format!("route add default via {own}.1"))?;
        }
        let sysctl = ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"];
        made.router.execute(&sysctl)?;
        Ok(made)
    }
}

fn execute(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments:?}: {errors}");
    Ok(())
}
