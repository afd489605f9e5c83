//! The Linux back-end on real kernels: two leafs in network namespaces of their own, a cable
//! between them, hosts on their ports. Needs root; says so and passes without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers")]

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::Command;
use std::time::Duration;

use agents_nos::linux::{Config, FilterConfig, Linux};
use agents_nos::lldp::{Neighbours, Speaker};
use agents_nos::model::{Mtu, Port, PortName, Segment};
use agents_nos::{Membership, Nos, Problem, Step, SwitchModel, Vni, plan};

const DEADLINE: Duration = Duration::from_secs(20);

/// A namespace that goes away with the value.
struct Namespace(String);

impl Namespace {
    fn new(test: &str, name: &str) -> Self {
        let name = format!("mmt{}-{test}-{name}", std::process::id());
        run("ip", &["netns", "add", &name]);
        run("ip", &["-n", &name, "link", "set", "lo", "up"]);
        Self(name)
    }

    fn ip(&self, arguments: &str) {
        let mut all = vec!["-n", self.0.as_str()];
        all.extend(arguments.split(' '));
        run("ip", &all);
    }

    /// `true` if a TCP connection to a listener in another namespace succeeds within a second.
    fn reaches(&self, target: SocketAddr) -> bool {
        self.inside(async move || {
            let attempt = tokio::net::TcpStream::connect(target);
            matches!(
                tokio::time::timeout(Duration::from_secs(1), attempt).await,
                Ok(Ok(_))
            )
        })
    }

    /// A socket that listens inside the namespace, wherever its handle goes.
    fn listen(&self, address: SocketAddr) -> TcpListener {
        self.inside(async move || TcpListener::bind(address).unwrap())
    }

    /// Runs a future on a thread of its own inside the namespace.
    fn inside<T: Send + 'static>(&self, work: impl AsyncFnOnce() -> T + Send + 'static) -> T {
        let path = format!("/run/netns/{}", self.0);
        let enter = move || {
            let file = std::fs::File::open(path).unwrap();
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(work())
        };
        std::thread::spawn(enter).join().unwrap()
    }

    fn apply(&self, vtep: IpAddr, intent: SwitchModel) -> Vec<Step> {
        self.inside(async move || reconcile(&open(vtep), &intent).await)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &["netns", "del", &self.0]);
    }
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("not run: network namespaces need root");
    }
    root
}

fn cable(a: &Namespace, port_a: &str, b: &Namespace, port_b: &str) {
    let arguments = format!(
        "-n {} link add {port_a} type veth peer name {port_b} netns {}",
        a.0, b.0
    );
    run("ip", &arguments.split(' ').collect::<Vec<_>>());
    b.ip(&format!("link set {port_b} up"));
}

fn open(vtep: IpAddr) -> Linux {
    Linux::open(Config {
        ports: vec!["swp*".into()],
        vtep,
        frr: None,
        filter: FilterConfig::default(),
    })
    .unwrap()
}

async fn reconcile(switch: &Linux, desired: &SwitchModel) -> Vec<Step> {
    let observed = switch.observe().await.unwrap().model;
    let todo = plan(&observed, desired, switch.capabilities());
    assert_eq!(todo.problems, Vec::<Problem>::new());
    for step in &todo.steps {
        switch.apply(step).await.unwrap();
        switch.apply(step).await.unwrap();
    }
    let observed = switch.observe().await.unwrap().model;
    let rest = plan(&observed, desired, switch.capabilities()).steps;
    assert_eq!(rest, vec![], "an applied plan leaves nothing to do");
    todo.steps
}

/// Ports in segments; 0 isolates.
fn intent(ports: &[(&str, u32)], remote: IpAddr) -> SwitchModel {
    let mut model = SwitchModel::default();
    for (name, number) in ports {
        let vni = Vni::new(*number).ok();
        let membership = vni.map_or(Membership::Quarantine, |vni| Membership::Segment {
            vni,
            is_private: false,
        });
        let port = Port {
            admin_up: true,
            mtu: None,
            membership,
        };
        model.ports.insert(PortName::new(name).unwrap(), port);
        if let Some(vni) = vni {
            let mut segment = Segment::new(Mtu::ETHERNET);
            segment.remotes.insert(remote);
            model.segments.insert(vni, segment);
        }
    }
    model
}

const VTEP1: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 1));
const VTEP2: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 2));

fn target() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], 7))
}

/// Two leafs with an underlay between them and a host on `swp1` of each.
struct Fabric {
    leaf1: Namespace,
    leaf2: Namespace,
    host1: Namespace,
    _host2: Namespace,
    _listener: TcpListener,
}

impl Fabric {
    fn new(test: &str) -> Self {
        let [leaf1, leaf2, host1, host2] =
            ["l1", "l2", "h1", "h2"].map(|name| Namespace::new(test, name));
        cable(&leaf1, "fab0", &leaf2, "fab0");
        for (leaf, address) in [(&leaf1, VTEP1), (&leaf2, VTEP2)] {
            leaf.ip("link set fab0 mtu 1600 up");
            leaf.ip(&format!("addr add {address}/24 dev fab0"));
        }
        for (leaf, host, address) in [
            (&leaf1, &host1, "192.0.2.1/24"),
            (&leaf2, &host2, "192.0.2.2/24"),
        ] {
            cable(leaf, "swp1", host, "eth0");
            host.ip(&format!("addr add {address} dev eth0"));
        }
        let listener = host2.listen(target());
        Self {
            _listener: listener,
            leaf1,
            leaf2,
            host1,
            _host2: host2,
        }
    }

    /// Puts `swp1` of both leafs into these segments; 0 isolates.
    fn place(&self, vni1: u32, vni2: u32) {
        self.leaf1.apply(VTEP1, intent(&[("swp1", vni1)], VTEP2));
        self.leaf2.apply(VTEP2, intent(&[("swp1", vni2)], VTEP1));
    }

    fn talk(&self) -> bool {
        let until = std::time::Instant::now() + DEADLINE;
        while std::time::Instant::now() < until {
            if self.host1.reaches(target()) {
                return true;
            }
        }
        false
    }
}

#[test]
fn one_segment_connects_and_another_does_not() {
    if !is_root() {
        return;
    }
    let fabric = Fabric::new("seg");
    fabric.place(10, 10);
    assert!(
        fabric.talk(),
        "two ports in one segment talk across the fabric"
    );
    fabric.place(10, 11);
    assert!(
        !fabric.host1.reaches(target()),
        "another segment is another world"
    );
    fabric.place(11, 11);
    assert!(fabric.talk(), "moved after the other");
    fabric.place(11, 0);
    assert!(
        !fabric.host1.reaches(target()),
        "an isolated port hears nobody"
    );
}

#[test]
fn private_ports_reach_the_uplink_and_not_each_other() {
    if !is_root() {
        return;
    }
    let leaf = Namespace::new("priv", "l1");
    let hosts = ["h1", "h2", "h3"].map(|name| Namespace::new("priv", name));
    let mut desired = intent(&[("swp1", 10), ("swp2", 10), ("swp3", 10)], VTEP2);
    let mut listeners = Vec::new();
    for (host, number) in hosts.iter().zip(1_u8..) {
        cable(&leaf, &format!("swp{number}"), host, "eth0");
        host.ip(&format!("addr add 192.0.2.{number}/24 dev eth0"));
        listeners.push(host.listen(SocketAddr::from(([192, 0, 2, number], 7))));
        let port = desired.ports.get_mut(format!("swp{number}").as_str());
        port.unwrap().membership = Membership::Segment {
            vni: Vni::new(10).unwrap(),
            is_private: number != 3,
        };
    }
    leaf.apply(VTEP1, desired.clone());
    // From quarantine, up, the ports enter privately and are up again.
    let names: Vec<PortName> = desired.ports.keys().cloned().collect();
    leaf.apply(
        VTEP1,
        intent(&[("swp1", 0), ("swp2", 0), ("swp3", 0)], VTEP2),
    );
    let steps = leaf.apply(VTEP1, desired);
    let enters = |port: &PortName| {
        let mut of = steps.iter();
        of.any(|step| matches!(step, Step::Enter { port: of, .. } if of == port))
    };
    assert!(names.iter().all(enters), "{steps:?}");
    let is_down = |step: &Step| matches!(step, Step::SetAdmin { .. });
    assert!(!steps.iter().any(is_down), "{steps:?}");
    let [first, _, uplink] = &hosts;
    let target = |number| SocketAddr::from(([192, 0, 2, number], 7));
    let until = std::time::Instant::now() + DEADLINE;
    while !first.reaches(target(3)) {
        assert!(std::time::Instant::now() < until, "the uplink is reached");
    }
    assert!(uplink.reaches(target(2)), "the uplink reaches every port");
    assert!(!first.reaches(target(2)), "a private port reaches another");
}

#[test]
fn what_an_operator_breaks_is_repaired_and_what_is_not_ours_is_left() {
    if !is_root() {
        return;
    }
    let leaf = Namespace::new("drift", "l1");
    for port in ["swp1", "swp2"] {
        leaf.ip(&format!("link add {port} type veth peer name x{port}"));
    }
    leaf.ip("link add mmbx type bridge");
    leaf.ip("link add br-mine type bridge");
    leaf.ip("link set xswp1 master br-mine");
    let want = intent(&[("swp1", 10), ("swp2", 0)], VTEP2);
    assert!(!leaf.apply(VTEP1, want.clone()).is_empty());
    assert_eq!(leaf.apply(VTEP1, want.clone()), vec![], "twice is once");
    for damage in [
        "link set swp1 nomaster",
        "link set swp2 master br-mine",
        "link set swp2 nomaster",
        "link set mmq up",
        "link set swp1 type bridge_slave isolated on",
        "link set mmb10 down",
        "link set mmx10 nomaster",
        "link set mmx10 mtu 1400",
        "link del mmx10",
        "link del mmb10",
    ] {
        leaf.ip(damage);
        assert!(
            !leaf.apply(VTEP1, want.clone()).is_empty(),
            "not seen: {damage}"
        );
    }
    let nothing = SwitchModel::default();
    leaf.apply(VTEP1, nothing);
    let left = leaf.inside(async || open(VTEP1).observe().await.unwrap());
    assert!(left.model.segments.is_empty());
    let is_isolated = |port: &Port| port.membership == Membership::Quarantine;
    assert!(left.model.ports.values().all(is_isolated));
    leaf.ip("link show mmbx");
    leaf.ip("link show br-mine");
}

#[test]
fn a_change_by_somebody_else_is_noticed() {
    if !is_root() {
        return;
    }
    let leaf = Namespace::new("watch", "l1");
    leaf.ip("link add swp1 type veth peer name x1");
    let name = leaf.0.clone();
    leaf.inside(async move || {
        let switch = open(VTEP1);
        switch.observe().await.unwrap();
        run("ip", &["-n", &name, "link", "set", "swp1", "up"]);
        tokio::time::timeout(DEADLINE, switch.changed())
            .await
            .unwrap();
        assert!(switch.observe().await.unwrap().model.ports["swp1"].admin_up);
    });
}

#[test]
fn a_machine_and_its_port_learn_each_other() {
    if !is_root() {
        return;
    }
    let leaf = Namespace::new("lldp", "l1");
    leaf.ip("link add swp1 type veth peer name eth0");
    leaf.ip("link set swp1 up");
    leaf.ip("link set eth0 up");
    leaf.apply(VTEP1, intent(&[("swp1", 10)], VTEP2));
    leaf.inside(async || {
        let neighbours = Neighbours::default();
        let stop = tokio_util::sync::CancellationToken::new();
        let speaker = Speaker {
            switch: "leaf1".into(),
            description: String::new(),
            port: "swp1".into(),
        };
        let came_up = std::sync::Arc::new(tokio::sync::Notify::new());
        let port = agents_nos::lldp::run(speaker, neighbours.clone(), came_up, stop.clone());
        let machine = async {
            let socket = proto_wire_lldp::Socket::open("eth0").unwrap();
            let mine = proto_wire_lldp::Frame {
                source: proto_wire_lldp::mac_of("eth0").unwrap(),
                chassis_id: "6f1c0001-0000-4000-8000-525400770101".into(),
                port_id: "eth0".into(),
                ttl_s: 60,
                ..proto_wire_lldp::Frame::default()
            };
            socket.send(&mine.encode()).await.unwrap();
            let heard = proto_wire_lldp::Frame::decode(&socket.recv().await.unwrap()).unwrap();
            assert_eq!(
                (heard.system_name.as_str(), heard.port_id.as_str()),
                ("leaf1", "swp1")
            );
            while neighbours.on("swp1").is_empty() {
                neighbours.changed().await;
            }
            assert_eq!(neighbours.on("swp1"), vec![mine]);
            stop.cancel();
        };
        let both = async { tokio::join!(port, machine) };
        tokio::time::timeout(DEADLINE, both).await.unwrap();
    });
}
