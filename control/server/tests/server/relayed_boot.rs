//! A machine boots over the DHCP relay of its leaf: control, the boot server and the switch's agent
//! as processes, in network namespaces. Control notes the port that the relay named. Needs root and
//! busybox; says so and passes without.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use control_state::{Machine, RelayedPort};
use control_store::{Store, StoreConfig};
use proto_types::MachineId;

use crate::cli::metalmesh;
use crate::daemon::{PATIENCE, program};

/// Management address of control and of the boot server's relay listener.
const SERVER: &str = "10.98.0.5";
/// Management address of the leaf.
const LEAF: &str = "10.98.0.11";
/// Address of the boot server in the provisioning network.
const PIXIE: &str = "10.99.1.2";
const MAC: &str = "52:54:00:99:01:01";
const UUID: &str = "6f1c0001-0000-4000-8000-525400990101";

/// Runs a program; panics with its output when it fails.
fn sh(program: &str, arguments: &str) -> String {
    let output = Command::new(program)
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{program} {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits for a condition with a deadline.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Three namespaces: control with the boot server, the leaf, the machine. Processes in them end
/// with the value.
struct Rack {
    control: String,
    leaf: String,
    machine: String,
    dir: tempfile::TempDir,
    processes: Vec<Child>,
}

impl Rack {
    fn new() -> Self {
        let name = |part: &str| format!("mmr{}{part}", std::process::id());
        let rack = Self {
            control: name("c"),
            leaf: name("l"),
            machine: name("m"),
            dir: tempfile::tempdir().unwrap(),
            processes: Vec::new(),
        };
        let (control, leaf, machine) = (&rack.control, &rack.leaf, &rack.machine);
        for namespace in [control, leaf, machine] {
            sh("ip", &format!("netns add {namespace}"));
            sh("ip", &format!("-n {namespace} link set lo up"));
        }
        for (from, end, to, other) in [
            (leaf, "mgmt0", control, "mgmt1"),
            (leaf, "up1", control, "prov0"),
            (leaf, "swp1", machine, "eth0"),
            (leaf, "swp2", machine, "eth1"),
        ] {
            let link = format!("-n {from} link add {end} type veth peer name {other} netns {to}");
            sh("ip", &link);
            sh("ip", &format!("-n {to} link set {other} up"));
        }
        sh("ip", &format!("-n {leaf} link set mgmt0 up"));
        sh("ip", &format!("-n {leaf} addr add {LEAF}/24 dev mgmt0"));
        sh(
            "ip",
            &format!("-n {control} addr add {SERVER}/24 dev mgmt1"),
        );
        sh("ip", &format!("-n {control} addr add {PIXIE}/24 dev prov0"));
        sh("ip", &format!("-n {machine} link set eth0 address {MAC}"));
        rack
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A program in a namespace, not yet running.
    fn command(&self, namespace: &str, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(program);
        command.env("METALMESH_CONFIG", self.path("context.yaml"));
        for variable in ["METALMESH_API_URL", "METAL_APIV2_URL"] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null());
        command
    }

    /// The output of a program in a namespace.
    fn run(&self, namespace: &str, program: &Path, arguments: &[&str]) -> String {
        let output = self.command(namespace, program).args(arguments).output();
        let output = output.unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a process whose log is a file of this name.
    fn start(&mut self, namespace: &str, name: &str, arguments: &[&str]) {
        let log = fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut command = self.command(namespace, &beside(name));
        command.args(arguments).stderr(log).stdout(Stdio::piped());
        self.processes.push(command.spawn().unwrap());
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap()
    }

    /// Starts control, and waits until it is ready.
    fn start_control(&mut self) {
        let (data, context) = (self.path("data"), self.path("context.yaml"));
        let namespace = self.control.clone();
        let listen = format!("{SERVER}:0");
        let arguments = [
            "--dev",
            "--api-listen",
            "127.0.0.1:0",
            "--mesh-listen",
            &listen,
            "--data-dir",
            data.to_str().unwrap(),
            "--context-file",
            context.to_str().unwrap(),
        ];
        self.start(&namespace, "metalmeshd", &arguments);
        let stdout = self.processes[0].stdout.take().unwrap();
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let ready = lines.any(|line| line.starts_with("ready "));
        assert!(ready, "{}", self.log("metalmeshd"));
    }

    /// Starts an agent with a ticket of its own.
    fn start_agent(&mut self, namespace: &str, kind: &str, id: &str, config: &str) {
        let name = format!("metalmesh-{kind}");
        let [state, ticket, file] =
            ["state", "ticket", "toml"].map(|part| self.path(&format!("{kind}.{part}")));
        let [state, ticket, file] = [&state, &ticket, &file].map(|path| path.to_str().unwrap());
        fs::write(file, config).unwrap();
        let key = self.run(namespace, &beside(&name), &["key", "--state-dir", state]);
        let create = ["join", "create", kind, "--partition", "lab", "--id", id];
        let bound = ["--key-sha256", key.trim(), "--out", ticket];
        let control = self.control.clone();
        self.run(
            &control,
            &beside("metalmesh"),
            &[&create[..], &bound].concat(),
        );
        let run = ["run", "--config", file, "--state-dir", state];
        let arguments = [&run[..], &["--ticket-file", ticket]].concat();
        self.start(namespace, &name, &arguments);
    }

    /// The answer of the boot server's HTTP to the machine.
    fn curl(&self, path: &str) -> Option<String> {
        let url = format!("http://{PIXIE}:8080{path}");
        let mut command = self.command(&self.machine, Path::new("curl"));
        let output = command.args(["-sfg", "-m", "5", &url]).output().unwrap();
        let body = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(body)
    }

    /// Asks for a lease as busybox does.
    fn ask_for_lease(&self) -> Option<Ipv4Addr> {
        let (script, bound) = (self.path("script"), self.path("bound"));
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = bound ] && echo \"$ip\" > {}\nexit 0\n",
            bound.display()
        );
        fs::write(&script, text).unwrap();
        sh("chmod", &format!("755 {}", script.display()));
        let mut command = self.command(&self.machine, Path::new("busybox"));
        command.args([
            "udhcpc", "-i", "eth0", "-f", "-q", "-n", "-t", "2", "-T", "1",
        ]);
        let output = command.arg("-s").arg(&script).output().unwrap();
        let leased = output
            .status
            .success()
            .then(|| fs::read_to_string(&bound))?;
        leased.unwrap().trim().parse().ok()
    }

    /// The port that control has noted for the machine's card, after all processes ended.
    async fn noted(&mut self) -> Option<RelayedPort> {
        for child in self.processes.iter_mut().rev() {
            let pid = child.id().to_string();
            sh("kill", &format!("-TERM {pid}"));
            child.wait().unwrap();
        }
        self.processes.clear();
        let config = StoreConfig::new(self.path("data"), 1, "metalmesh");
        let store: Store = Store::open(config).await.unwrap();
        let noted = store.read_local(|tables| {
            let id: MachineId = UUID.parse().unwrap();
            let machine = tables.get::<Machine>(&id)?;
            machine.boot_ports.get(&MAC.parse().unwrap()).cloned()
        });
        store.shutdown().await;
        noted.unwrap()
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for child in &mut self.processes {
            // It may have ended already.
            let _gone = child.kill();
            let _reaped = child.wait();
        }
        for namespace in [&self.control, &self.leaf, &self.machine] {
            let _removed = Command::new("ip")
                .args(["netns", "del", namespace])
                .status();
        }
    }
}

/// A program of the workspace.
fn beside(name: &str) -> PathBuf {
    Path::new(program()).with_file_name(name)
}

/// `true` if the test cannot run here, which is said.
fn skipped() -> bool {
    let is_missing = |name: &&str| !beside(name).exists();
    let missing = ["metalmesh-core", "metalmesh-pixie"]
        .into_iter()
        .find(is_missing);
    let busybox = Command::new("busybox").arg("true").status();
    let why = match missing {
        Some(name) => format!("{name} is not built"),
        None if metalmesh().is_none() => return true,
        None if !nix::unistd::geteuid().is_root() => "network namespaces need root".to_owned(),
        None if !busybox.is_ok_and(|status| status.success()) => "busybox is missing".to_owned(),
        None => return false,
    };
    println!("SKIPPED: {why}");
    true
}

fn pixie_config(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "http_port = 8080\n\
         [boot]\nassets = \"{dir}\"\nkernel = \"{dir}/vmlinuz\"\ninitrd = \"{dir}/initrd\"\n\
         [relay]\ninterface = \"mgmt1\"\naddress = \"{SERVER}\"\n\
         [[network]]\ninterface = \"prov0\"\naddress = \"{PIXIE}\"\nsubnet = \"10.99.1.0/24\"\n\
         range = [\"10.99.1.100\", \"10.99.1.110\"]\nrelayed = true\n"
    )
}

fn core_config(relay: &str) -> String {
    format!(
        "rack = \"rack-1\"\nmanagement_ip = \"{LEAF}\"\nvtep = \"10.91.0.11\"\n\
         uplinks = [\"up1\"]\n{relay}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn control_notes_the_port_that_a_machine_booted_at() {
    if skipped() {
        return;
    }
    let mut rack = Rack::new();
    for file in [
        "undionly.kpxe",
        "snponly.efi",
        "ipxe.efi",
        "vmlinuz",
        "initrd",
    ] {
        fs::write(rack.path(file), [7; 1000]).unwrap();
    }
    rack.start_control();
    let (control, leaf) = (rack.control.clone(), rack.leaf.clone());
    let cli = beside("metalmesh");
    rack.run(&control, &cli, &["partition", "create", "lab"]);
    let config = pixie_config(rack.dir.path());
    rack.start_agent(&control, "pixie", "pixie1", &config);
    let relay = format!("[relay]\nserver = \"{SERVER}\"\nlink = \"10.99.1.0\"\n");
    rack.start_agent(&leaf, "core", "leaf1", &core_config(&relay));

    // From here on the machine asks as a firmware does, until the port is relayed.
    let mut lease = None;
    wait_for("a lease", || {
        lease = rack.ask_for_lease();
        lease.is_some()
    });
    let lease = lease.unwrap();
    assert!(lease.to_string().starts_with("10.99.1.1"), "{lease}");
    sh(
        "ip",
        &format!("-n {} addr add {lease}/24 dev eth0", rack.machine),
    );
    let mac = MAC.replace(':', "-");
    let path = format!("/v1/boot.ipxe?mac={mac}&uuid={UUID}&platform=pcbios&buildarch=i386");
    let mut script = None;
    wait_for("a boot script", || {
        script = rack.curl(&path);
        script.is_some()
    });
    assert!(script.unwrap().starts_with("#!ipxe"));
    // The segment may have carried none of the first questions.
    wait_for("the broadcast beside the relayed question", || {
        rack.ask_for_lease();
        let health = rack.curl("/healthz").unwrap_or_default();
        health.contains("\"unrelayed\":")
    });
    wait_for("the machine", || {
        let known = rack.run(&control, &cli, &["machine", "ls", "-o", "json"]);
        known.contains(UUID)
    });
    let port = RelayedPort {
        switch: "leaf1".parse().unwrap(),
        port: "swp1".to_owned(),
    };
    assert_eq!(rack.noted().await, Some(port));
}
