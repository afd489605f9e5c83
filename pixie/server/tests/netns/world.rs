//! Two network namespaces with a cable between them: pixie in one, clients in the other.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use pixie_server::Config;
use proto_types::MacAddr;

/// Address of pixie on the cable.
pub(crate) const PIXIE: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 2);
/// MAC address of the client's interface.
pub(crate) const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x99, 1, 1]);
/// SMBIOS UUID of the client.
pub(crate) const UUID: &str = "6f1c0001-0000-4000-8000-525400990101";
/// Longest wait for a condition of these tests. A longer one fails the test.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

/// `true` if the test cannot run here; prints the reason.
pub(crate) fn skipped() -> bool {
    let skip = !nix::unistd::geteuid().is_root();
    if skip {
        eprintln!("SKIPPED: network namespaces need root");
    }
    skip
}

/// Runs a program; panics with its output when it fails.
pub(crate) fn sh(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {args:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// `true` if a program is installed. Prints that a check is left out otherwise.
pub(crate) fn have(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join(program).exists());
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Waits for a condition with a deadline.
pub(crate) fn wait_for(what: &str, condition: impl FnMut() -> bool) {
    wait_long(what, WAIT, condition);
}

/// Waits for a condition with a deadline of one's own.
pub(crate) fn wait_long(what: &str, wait: Duration, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + wait;
    while !condition() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// The two namespaces; removed with everything in them when dropped.
pub(crate) struct World {
    pub(crate) pixie_ns: String,
    pub(crate) client_ns: String,
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let world = Self {
            pixie_ns: format!("pxt{id}s"),
            client_ns: format!("pxt{id}c"),
            dir: tempfile::tempdir().unwrap(),
        };
        for ns in [&world.pixie_ns, &world.client_ns] {
            sh("ip", &["netns", "add", ns]);
            sh("ip", &["-n", ns, "link", "set", "lo", "up"]);
        }
        let (server, client) = (world.pixie_ns.as_str(), world.client_ns.as_str());
        sh(
            "ip",
            &[
                "-n", server, "link", "add", "s0", "type", "veth", "peer", "name", "c0", "netns",
                client,
            ],
        );
        sh(
            "ip",
            &[
                "-n",
                server,
                "addr",
                "add",
                &format!("{PIXIE}/24"),
                "dev",
                "s0",
            ],
        );
        sh(
            "ip",
            &[
                "-n",
                client,
                "link",
                "set",
                "c0",
                "address",
                &MAC.to_string(),
            ],
        );
        sh("ip", &["-n", server, "link", "set", "s0", "up"]);
        sh("ip", &["-n", client, "link", "set", "c0", "up"]);
        world.write("undionly.kpxe", &pattern(70_000));
        world.write("snponly.efi", &pattern(512 * 20));
        world.write("ipxe.efi", &pattern(1000));
        world.write("vmlinuz", &pattern(300_000));
        world.write("initrd", &pattern(100));
        world
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.dir.path().join(name), bytes).unwrap();
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The configuration, with lines added to the network's section.
    pub(crate) fn config(&self, network: &str) -> Config {
        Config::parse(&self.text(network)).unwrap()
    }

    /// The text of [`World::config`].
    fn text(&self, network: &str) -> String {
        let dir = self.dir.path().display();
        format!(
            "http_port = 8080\n\
             [boot]\nassets = \"{dir}\"\nkernel = \"{dir}/vmlinuz\"\ninitrd = \"{dir}/initrd\"\n\
             [[network]]\ninterface = \"s0\"\naddress = \"{PIXIE}\"\nsubnet = \"10.99.1.0/24\"\n\
             {network}\n"
        )
    }

    pub(crate) fn server_config(&self) -> Config {
        Config::parse(&self.server_text()).unwrap()
    }

    /// The text of [`World::server_config`].
    pub(crate) fn server_text(&self) -> String {
        self.text(
            "range = [\"10.99.1.100\", \"10.99.1.110\"]\nrouter = \"10.99.1.2\"\n\
             [network.bmc]\nrange = [\"10.99.1.200\", \"10.99.1.210\"]\n\
             vendor_classes = [\"iDRAC\"]",
        )
    }

    /// Runs a closure on a thread inside the clients' namespace.
    pub(crate) fn in_client<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        on_thread(&self.client_ns, f).join().unwrap()
    }

    /// Gives the client's interface its address.
    pub(crate) fn set_address(&self, address: Ipv4Addr) {
        sh("ip", &["-n", &self.client_ns, "addr", "flush", "dev", "c0"]);
        let address = format!("{address}/24");
        sh(
            "ip",
            &["-n", &self.client_ns, "addr", "add", &address, "dev", "c0"],
        );
    }

    /// Runs a program in the clients' namespace.
    pub(crate) fn client(&self, program: &str, args: &[&str]) -> Output {
        let all = [&["netns", "exec", &self.client_ns, program][..], args].concat();
        Command::new("ip").args(all).output().unwrap()
    }

    /// Puts the clients' end of the cable and a tap for a machine on a bridge.
    pub(crate) fn bridge(&self) {
        let ns = self.client_ns.as_str();
        sh("ip", &["-n", ns, "link", "add", "br0", "type", "bridge"]);
        sh("ip", &["-n", ns, "tuntap", "add", "t0", "mode", "tap"]);
        // The machine has this address itself.
        sh(
            "ip",
            &[
                "-n",
                ns,
                "link",
                "set",
                "c0",
                "address",
                "52:54:00:99:01:02",
            ],
        );
        for device in ["c0", "t0"] {
            sh("ip", &["-n", ns, "link", "set", device, "master", "br0"]);
            sh("ip", &["-n", ns, "link", "set", device, "up"]);
        }
        sh("ip", &["-n", ns, "link", "set", "br0", "up"]);
    }

    /// Starts a DHCP server without boot information on the bridge.
    pub(crate) fn dnsmasq(&self) -> Machine {
        let ns = self.client_ns.as_str();
        sh(
            "ip",
            &["-n", ns, "addr", "add", "10.99.1.3/24", "dev", "br0"],
        );
        let leases = format!(
            "--dhcp-leasefile={}",
            self.dir.path().join("dnsmasq").display()
        );
        let child = Command::new("ip")
            .args([
                "netns",
                "exec",
                ns,
                "dnsmasq",
                "--keep-in-foreground",
                "--port=0",
            ])
            .args([
                "--conf-file=/dev/null",
                "--interface=br0",
                "--bind-interfaces",
                "--no-ping",
            ])
            .args([
                "--user=root",
                "--dhcp-range=10.99.1.50,10.99.1.60,10m",
                &leases,
            ])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Machine(child)
    }

    /// Starts a machine with its network card on the bridge. What it writes on its serial line
    /// goes to the file `serial`.
    pub(crate) fn machine(&self, args: &[&str]) -> Machine {
        let ns = self.client_ns.as_str();
        let serial = format!("file:{}", self.dir.path().join("serial").display());
        let child = Command::new("ip")
            .args([
                "netns",
                "exec",
                ns,
                "qemu-system-x86_64",
                "-machine",
                "q35,graphics=off",
            ])
            .args([
                "-accel", "tcg", "-cpu", "qemu64", "-m", "256", "-display", "none",
            ])
            .args([
                "-nodefaults",
                "-no-reboot",
                "-uuid",
                UUID,
                "-serial",
                &serial,
            ])
            .args(["-netdev", "tap,id=n0,ifname=t0,script=no,downscript=no"])
            .args(args)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Machine(child)
    }

    /// `curl` in the clients' namespace: status and body.
    pub(crate) fn curl(&self, path: &str, args: &[&str]) -> (u16, String) {
        let url = format!("http://{PIXIE}:8080{path}");
        let all = [
            &["-s", "-g", "-m", "20", "-w", "\n%{http_code}", &url][..],
            args,
        ]
        .concat();
        let output = self.client("curl", &all);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for ns in [&self.pixie_ns, &self.client_ns] {
            let removed = Command::new("ip").args(["netns", "del", ns]).status();
            assert!(
                removed.is_ok_and(|status| status.success()),
                "{ns} not removed"
            );
        }
    }
}

/// A running machine or server; ended when dropped.
pub(crate) struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Bytes that differ from block to block.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7 + i % 251) as u8).collect()
}

/// Runs a closure on a thread of its own inside a namespace.
pub(crate) fn on_thread<T: Send + 'static>(
    ns: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let file = File::open(Path::new("/var/run/netns").join(ns)).unwrap();
    std::thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
        f()
    })
}
