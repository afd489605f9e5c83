//! A cluster of real nodes, each in a network namespace of its own, and what can happen to it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use tests_lab::netns::{Namespace, cable};
use tests_lab::process::Process;
use tests_lab::state::Record;

/// Bytes of a small disk, see [`Cluster::small_disk`].
const SMALL_DISK: &str = "256m";

/// Nodes at a switch, and a place for clients.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) record: Record,
    switch: Namespace,
    /// Where clients are.
    pub clients: Namespace,
    /// In the order of their addresses.
    pub nodes: Vec<Node>,
}

/// One node.
#[derive(Debug)]
pub struct Node {
    /// From 1.
    pub number: usize,
    pub(crate) namespace: Namespace,
    process: Option<Process>,
    /// Keeps a mount namespace with a small disk alive.
    disk: Option<Process>,
}

impl Node {
    /// Its address at the switch.
    pub fn address(&self) -> String {
        format!("10.78.0.{}", self.number)
    }

    /// The running process.
    ///
    /// # Errors
    /// It was not started.
    pub fn process(&self) -> Result<&Process> {
        self.process
            .as_ref()
            .with_context(|| format!("node {} does not run", self.number))
    }
}

impl Cluster {
    /// Namespaces and cables for so many nodes; nothing runs yet.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn lay_out(nodes: usize) -> Result<Self> {
        let record = Record::create(&std::env::current_exe()?)?;
        let switch = Namespace::create(&record, "switch")?;
        switch.ip("link add br0 type bridge mcast_snooping 0")?;
        switch.ip("link set br0 up")?;
        let clients = Namespace::create(&record, "clients")?;
        plug(&switch, &clients, "clients", "10.78.0.100")?;
        let mut cluster = Self {
            record,
            switch,
            clients,
            nodes: Vec::new(),
        };
        for _ in 0..nodes {
            cluster.add_node()?;
        }
        Ok(cluster)
    }

    /// One more place for a node; its index.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn add_node(&mut self) -> Result<usize> {
        let number = self.nodes.len() + 1;
        let namespace = Namespace::create(&self.record, &format!("node{number}"))?;
        let node = Node {
            number,
            namespace,
            process: None,
            disk: None,
        };
        plug(
            &self.switch,
            &node.namespace,
            &format!("node{number}"),
            &node.address(),
        )?;
        self.nodes.push(node);
        Ok(number - 1)
    }

    /// A file of the cluster.
    ///
    /// # Errors
    /// Its directory cannot be made.
    pub fn path(&self, relative: &str) -> Result<PathBuf> {
        self.record.path(relative)
    }

    /// The data directory of a node.
    ///
    /// # Errors
    /// Its parent cannot be made.
    pub fn data_dir(&self, at: usize) -> Result<PathBuf> {
        self.path(&format!("node{}/data", at + 1))
    }

    /// Starts a node's program with these arguments; its output goes to its log.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(&mut self, at: usize, program: &Path, arguments: &[String]) -> Result<()> {
        let node = &self.nodes[at];
        let mut command = match &node.disk {
            None => node.namespace.command(program),
            Some(disk) => {
                let mut command = Command::new("nsenter");
                command
                    .arg(format!("--net={}", node.namespace.path()))
                    .arg(format!("--mount=/proc/{}/ns/mnt", disk.pid()))
                    .arg(program);
                command
            }
        };
        command.args(arguments);
        let name = format!("node{}", node.number);
        self.nodes[at].process = Some(Process::spawn(&self.record, &name, command)?);
        Ok(())
    }

    /// The power goes: kill -9.
    ///
    /// # Errors
    /// It does not run, or does not go.
    pub fn kill(&self, at: usize) -> Result<()> {
        self.nodes[at].process()?.kill()
    }

    /// The process stands still, and nobody notices but by its silence.
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&self, at: usize) -> Result<()> {
        self.nodes[at].process()?.signal(Signal::SIGSTOP);
        Ok(())
    }

    /// The process goes on as if nothing had been.
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&self, at: usize) -> Result<()> {
        self.nodes[at].process()?.signal(Signal::SIGCONT);
        Ok(())
    }

    /// Pulls a node's cable.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn cut(&self, at: usize) -> Result<()> {
        self.switch.ip(&format!("link set node{} down", at + 1))
    }

    /// Plugs it in again.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn heal(&self, at: usize) -> Result<()> {
        self.switch.ip(&format!("link set node{} up", at + 1))
    }

    /// Gives a node that was not started a small disk under its data directory.
    ///
    /// # Errors
    /// It cannot be mounted.
    pub fn small_disk(&mut self, at: usize) -> Result<()> {
        let dir = self.data_dir(at)?;
        std::fs::create_dir_all(&dir)?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.arg(format!(
            "mount -t tmpfs -o size={SMALL_DISK},mode=0700 tmpfs {} && echo mounted && exec tail -f /dev/null",
            dir.display()
        ));
        let name = format!("disk{}", at + 1);
        let holder = Process::spawn(&self.record, &name, command)?;
        tests_lab::wait::wait_for("a small disk", std::time::Duration::from_secs(10), || {
            holder.check()?;
            let said = std::fs::read_to_string(holder.log())?;
            Ok(said.contains("mounted").then_some(()))
        })?;
        self.nodes[at].disk = Some(holder);
        Ok(())
    }

    /// Something else fills the small disk of a node; returns what to remove to free it.
    ///
    /// # Errors
    /// It has no small disk.
    pub fn fill_disk(&self, at: usize) -> Result<PathBuf> {
        let disk = self.nodes[at].disk.as_ref().context("no small disk")?;
        let inside = self.data_dir(at)?;
        let inside = inside.strip_prefix("/")?;
        let filler = Path::new("/proc")
            .join(disk.pid().to_string())
            .join("root")
            .join(inside)
            .join("filler");
        let mut file = std::fs::File::create(&filler)?;
        // Ends with "no space left on device", which is what was wanted.
        std::io::copy(&mut std::io::repeat(7), &mut file).ok();
        Ok(filler)
    }

    /// From now on each sync of a node fails as a broken disk would have it; ends with the node.
    ///
    /// # Errors
    /// There is no strace, or the node does not run.
    pub fn break_syncs(&self, at: usize) -> Result<Process> {
        let pid = self.nodes[at].process()?.pid();
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range"])
            .args(["-e", "inject=fsync,fdatasync:error=EIO", "-p"])
            .arg(pid.to_string())
            .stdout(Stdio::null());
        Process::spawn(&self.record, &format!("strace{}", at + 1), command)
    }

    /// What a node has logged.
    ///
    /// # Errors
    /// It was not started.
    pub fn log(&self, at: usize) -> Result<String> {
        let bytes = std::fs::read(self.nodes[at].process()?.log())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &self.nodes {
            if let Some(process) = &node.process {
                process.signal(Signal::SIGCONT);
            }
        }
        let gone = self.record.take_down();
        let cleared = if std::thread::panicking() {
            eprintln!("logs: {}", self.record.dir().join("log").display());
            self.record.keep_logs_only()
        } else {
            self.record.erase()
        };
        if let Err(error) = gone.and(cleared) {
            eprintln!("the cluster left something behind: {error:#}");
        }
    }
}

fn plug(switch: &Namespace, host: &Namespace, port: &str, address: &str) -> Result<()> {
    cable(host, "eth0", switch, port)?;
    switch.ip(&format!("link set {port} master br0"))?;
    host.ip(&format!("addr add {address}/24 dev eth0"))
}
