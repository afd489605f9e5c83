//! zebra and bgpd in a network namespace of their own.

use std::fs::File;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agents_nos::frr::{Frr, FrrError, Observed, Vtysh};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A switch with FRR. Daemons, sockets and namespace go away with the value.
pub(crate) struct Switch {
    /// Name of the namespace and of FRR's path space.
    pub(crate) name: String,
    pub(crate) frr: Frr,
    zebra: Option<Child>,
    bgpd: Option<Child>,
}

/// `false`, with a printed reason, where FRR or the right to make namespaces is missing.
pub(crate) fn is_available() -> bool {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED: network namespaces need root");
        return false;
    }
    for program in ["/usr/lib/frr/zebra", "/usr/lib/frr/bgpd", "/usr/bin/vtysh"] {
        if !std::path::Path::new(program).exists() {
            eprintln!("SKIPPED: {program} (Debian package frr) is missing");
            return false;
        }
    }
    true
}

impl Switch {
    /// Starts a switch with these ports, each a cable whose other end is `x` and its name, in the
    /// same namespace and up.
    pub(crate) async fn start(test: &str, ports: &[&str]) -> Self {
        let name = format!("mmf{}-{test}", std::process::id());
        ip(&format!("netns add {name}"));
        let vtysh = Vtysh {
            command: ["vtysh", "-N", &name].map(str::to_owned).to_vec(),
            ..Vtysh::default()
        };
        let mut switch = Self {
            frr: Frr::new(vtysh),
            name,
            zebra: None,
            bgpd: None,
        };
        switch.ip("link set lo up");
        for port in ports {
            switch.ip(&format!("link add {port} type veth peer name x{port}"));
            switch.ip(&format!("link set {port} up"));
            switch.ip(&format!("link set x{port} up"));
        }
        std::fs::create_dir_all(switch.sockets()).unwrap();
        let user = nix::unistd::User::from_name("frr").unwrap().unwrap();
        let ids = (user.uid.as_raw(), user.gid.as_raw());
        chown(switch.sockets(), Some(ids.0), Some(ids.1)).unwrap();
        switch.zebra = Some(switch.daemon("zebra"));
        switch.bgpd = Some(switch.daemon("bgpd"));
        switch.ready().await;
        switch
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.name));
    }

    /// Runs vtysh by hand, as an operator does.
    pub(crate) fn vtysh(&self, commands: &str) -> String {
        vtysh(&self.name, commands)
    }

    /// Waits until both daemons answer.
    pub(crate) async fn ready(&self) -> Observed {
        let until = Instant::now() + DEADLINE;
        loop {
            match self.frr.observe().await {
                Ok(observed) => return observed,
                Err(e) => assert!(Instant::now() < until, "FRR does not start: {e}"),
            }
        }
    }

    /// Kills bgpd, as a crash does.
    pub(crate) async fn crash_bgpd(&mut self) {
        end(&mut self.bgpd);
        let missing = self.frr.observe().await.unwrap_err();
        assert!(matches!(missing, FrrError::NoDaemon("bgpd")), "{missing}");
    }

    pub(crate) async fn restart_bgpd(&mut self) {
        self.bgpd = Some(self.daemon("bgpd"));
        self.ready().await;
    }

    /// Sends zebra a signal, such as one that it waits by.
    #[allow(
        dead_code,
        reason = "the tests of leaves, which share this file, use it"
    )]
    pub(crate) fn signal_zebra(&self, signal: Signal) {
        let zebra = self.zebra.as_ref().unwrap().id();
        kill(Pid::from_raw(zebra.try_into().unwrap()), signal).unwrap();
    }

    /// Kills both daemons, as a loss of power does. What they configured in the kernel stays.
    #[allow(
        dead_code,
        reason = "the fabric's tests, which share this file, use it"
    )]
    pub(crate) fn crash(&mut self) {
        end(&mut self.bgpd);
        end(&mut self.zebra);
    }

    /// Starts both daemons again.
    #[allow(
        dead_code,
        reason = "the fabric's tests, which share this file, use it"
    )]
    pub(crate) async fn restart(&mut self) {
        self.zebra = Some(self.daemon("zebra"));
        self.bgpd = Some(self.daemon("bgpd"));
        self.ready().await;
    }

    fn daemon(&self, program: &str) -> Child {
        Command::new("ip")
            .args(["netns", "exec", &self.name])
            .arg(format!("/usr/lib/frr/{program}"))
            .args(["-N", &self.name, "-P", "0", "-f", "/dev/null"])
            .args(["--log", &format!("file:{}", self.log(program).display())])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.words(program))
            .spawn()
            .unwrap()
    }

    /// The log of a daemon, with the signal that it crashed by. It is kept if `FRR_LOG_DIR` names a
    /// directory for it.
    fn log(&self, program: &str) -> PathBuf {
        match std::env::var_os("FRR_LOG_DIR") {
            Some(kept) => PathBuf::from(kept).join(format!("{}-{program}.log", self.name)),
            None => self.sockets().join(format!("{program}.log")),
        }
    }

    /// The file of what a daemon writes beside its log.
    fn words(&self, program: &str) -> File {
        let path = self.sockets().join(format!("{program}.err"));
        File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap()
    }

    /// Prints the last words of both daemons, for a failure. The list of a crashed one's memory is left
    /// out: it is longer than all else.
    pub(crate) fn show_words(&self) {
        for program in ["zebra", "bgpd"] {
            let paths = [
                self.log(program),
                self.sockets().join(format!("{program}.err")),
            ];
            for path in paths {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let lines = text
                    .lines()
                    .filter(|line| !line.contains("in memory group"));
                let lines: Vec<&str> = lines.filter(|line| !line.contains("memstats:")).collect();
                for line in lines.iter().skip(lines.len().saturating_sub(40)) {
                    println!("{} {program}: {line}", self.name);
                }
            }
        }
    }

    fn sockets(&self) -> PathBuf {
        PathBuf::from("/var/run/frr").join(&self.name)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        end(&mut self.bgpd);
        end(&mut self.zebra);
        std::fs::remove_dir_all(self.sockets()).ok();
        ip(&format!("netns del {}", self.name));
    }
}

/// `ip netns exec` becomes the daemon, so that its process is the child itself.
fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        child.kill().ok();
        child.wait().ok();
    }
}

pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "ip {arguments}");
}

/// Runs vtysh by hand on the switch of this name.
pub(crate) fn vtysh(name: &str, commands: &str) -> String {
    let output = Command::new("vtysh")
        .args(["-N", name, "-c", commands])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
