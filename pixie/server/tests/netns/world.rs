//! Two network namespaces with a cable between them: pixie in one, clients in the other.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use nix::sched::{CloneFlags, setns};
use pixie_boot::{InstallerSource, Target};
use pixie_server::control::{BmcLease, Control, ControlError, Desired, Seen, Ticket};
use pixie_server::{Config, DesiredSink, Pixie};
use proto_types::{MacAddr, MachineId};
use proto_wire_dhcp::{BOOTP_REQUEST, Kind, Message, Options, code};
use tokio_util::sync::CancellationToken;

pub(crate) const PIXIE: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 2);
pub(crate) const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x99, 1, 1]);
pub(crate) const UUID: &str = "6f1c0001-0000-4000-8000-525400990101";
const WAIT: Duration = Duration::from_secs(20);

/// Prints why a test does not run, when it cannot.
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

/// Whether a program is there; prints that a check is left out when it is not.
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
        let dir = self.dir.path().display();
        Config::parse(&format!(
            "http_port = 8080\n\
             [boot]\nassets = \"{dir}\"\nkernel = \"{dir}/vmlinuz\"\ninitrd = \"{dir}/initrd\"\n\
             [[network]]\ninterface = \"s0\"\naddress = \"{PIXIE}\"\nsubnet = \"10.99.1.0/24\"\n\
             {network}\n"
        ))
        .unwrap()
    }

    pub(crate) fn server_config(&self) -> Config {
        self.config(
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

    /// Another DHCP server on the bridge, which knows nothing of booting.
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

/// A control that does as the test says.
#[derive(Debug, Default)]
pub(crate) struct FakeControl {
    pub(crate) away: Mutex<bool>,
    pub(crate) target: Mutex<Option<Target>>,
    pub(crate) seen: Mutex<Vec<Seen>>,
    pub(crate) tickets: Mutex<Vec<MachineId>>,
    pub(crate) leases: Mutex<Vec<BmcLease>>,
}

impl FakeControl {
    pub(crate) fn set_away(&self, away: bool) {
        *self.away.lock().unwrap() = away;
    }

    fn answer<T>(&self, value: impl FnOnce() -> T) -> Result<T, ControlError> {
        if *self.away.lock().unwrap() {
            Err(ControlError::Away("switched off by the test".into()))
        } else {
            Ok(value())
        }
    }
}

impl Control for FakeControl {
    fn seen(&self, seen: Seen) -> BoxFuture<'_, Result<Option<Target>, ControlError>> {
        Box::pin(async move {
            self.answer(|| {
                self.seen.lock().unwrap().push(seen);
                *self.target.lock().unwrap()
            })
        })
    }

    fn issue_ticket(
        &self,
        machine: MachineId,
        _mac: MacAddr,
    ) -> BoxFuture<'_, Result<Ticket, ControlError>> {
        Box::pin(async move {
            self.answer(|| {
                self.tickets.lock().unwrap().push(machine);
                Ticket {
                    id: "t-1".into(),
                    secret: vec![1, 2, 3],
                    roots: vec![vec![4, 5]],
                }
            })
        })
    }

    fn report_leases(&self, leases: Vec<BmcLease>) -> BoxFuture<'_, Result<(), ControlError>> {
        Box::pin(async move { self.answer(|| *self.leases.lock().unwrap() = leases) })
    }
}

/// A running pixie; stopped when dropped.
pub(crate) struct Running {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
    pub(crate) sink: DesiredSink,
    pub(crate) control: Arc<FakeControl>,
}

impl Running {
    pub(crate) fn start(world: &World, config: Config) -> Self {
        let control = Arc::new(FakeControl::default());
        let stop = CancellationToken::new();
        let (ready, started) = std::sync::mpsc::channel();
        let (state, token) = (world.state_dir(), stop.clone());
        let for_pixie: Arc<FakeControl> = Arc::clone(&control);
        let thread = on_thread(&world.pixie_ns, move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let pixie = Pixie::spawn(config, for_pixie, &state, token)
                    .await
                    .unwrap();
                ready.send(pixie.desired_sink()).unwrap();
                pixie.run().await.unwrap();
            });
        });
        let sink = started.recv_timeout(WAIT).expect("pixie starts");
        Self {
            stop,
            thread: Some(thread),
            sink,
            control,
        }
    }

    pub(crate) fn set_target(&self, target: Target) {
        self.set_installer(target, InstallerSource::Own);
    }

    /// Control names an installer; the machine boots `target`.
    pub(crate) fn set_installer(&self, target: Target, installer: InstallerSource) {
        let mut desired = Desired {
            generation: 1,
            installer,
            commandline: "extra=1".into(),
            control: vec!["10.90.0.1:4443".into()],
            ..Desired::default()
        };
        desired
            .machines
            .insert(UUID.parse().unwrap(), [MAC], target);
        self.sink.set(desired, true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Options as code and bytes.
pub(crate) type Raw<'a> = &'a [(u8, &'a [u8])];

/// A client's message.
pub(crate) fn message(kind: Kind, options: Raw<'_>) -> Message {
    let mut all = Options::default();
    for (code, value) in options {
        all.set(*code, *value);
    }
    Message {
        op: BOOTP_REQUEST,
        kind,
        hops: 0,
        xid: 0x1234_0000 | kind as u32,
        secs: 0,
        flags: 0,
        ciaddr: Ipv4Addr::UNSPECIFIED,
        yiaddr: Ipv4Addr::UNSPECIFIED,
        siaddr: Ipv4Addr::UNSPECIFIED,
        giaddr: Ipv4Addr::UNSPECIFIED,
        chaddr: MAC,
        sname: String::new(),
        file: String::new(),
        options: all,
    }
}

/// Sends a message from the client's namespace and waits for the answer; none within `wait`.
pub(crate) fn ask(world: &World, request: Message, port: u16, wait: Duration) -> Option<Message> {
    world.in_client(move || {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.set_broadcast(true).unwrap();
        socket.bind_device(Some(b"c0")).unwrap();
        socket
            .bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 68)).into())
            .unwrap();
        let socket = UdpSocket::from(socket);
        let to = if port == 67 {
            Ipv4Addr::BROADCAST
        } else {
            PIXIE
        };
        socket.send_to(&request.encode(), (to, port)).unwrap();
        let end = Instant::now() + wait;
        let mut buffer = [0_u8; 2048];
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            socket
                .set_read_timeout(Some(left.max(Duration::from_millis(1))))
                .unwrap();
            let Ok((len, _)) = socket.recv_from(&mut buffer) else {
                break;
            };
            match Message::decode(&buffer[..len]) {
                Ok(answer) if answer.xid == request.xid && answer.op != BOOTP_REQUEST => {
                    return Some(answer);
                }
                _ => {}
            }
        }
        None
    })
}

/// Sends a message until it is answered, as clients do (RFC 2131 §4.1): a datagram may be lost.
fn ask_again(world: &World, request: &Message) -> Option<Message> {
    (0..5).find_map(|_| ask(world, request.clone(), 67, Duration::from_secs(4)))
}

/// The whole exchange of a client: discover, offer, request, acknowledgement.
pub(crate) fn lease(world: &World, options: Raw<'_>) -> Message {
    let offer = ask_again(world, &message(Kind::Discover, options)).expect("an offer");
    assert_eq!(offer.kind, Kind::Offer);
    let server = offer.options.address(code::SERVER_ID).unwrap().octets();
    let address = offer.yiaddr.octets();
    let more = [
        options,
        &[
            (code::SERVER_ID, &server[..]),
            (code::REQUESTED_ADDRESS, &address),
        ],
    ];
    let ack = ask_again(world, &message(Kind::Request, &more.concat())).expect("an answer");
    assert_eq!((ack.kind, ack.yiaddr), (Kind::Ack, offer.yiaddr));
    ack
}
