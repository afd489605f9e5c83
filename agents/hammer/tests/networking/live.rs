//! A routed machine between two leaves, each in a network namespace with FRR.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agents_hammer::install::features::ImageFeatures;
use agents_hammer::install::item::ItemState;

use crate::world::{files, must, run};

const DEADLINE: Duration = Duration::from_secs(30);

/// A host with zebra and bgpd. Daemons, sockets and namespace go away with the value.
struct Router {
    name: String,
    daemons: Vec<Child>,
}

impl Router {
    fn new(role: &str) -> Self {
        let name = format!("mmh{}{role}", std::process::id());
        must(&format!(
            "ip netns add {name} && ip -n {name} link set lo up"
        ));
        Self {
            name,
            daemons: Vec::new(),
        }
    }

    fn sockets(&self) -> PathBuf {
        PathBuf::from("/var/run/frr").join(&self.name)
    }

    /// Starts the daemons, and loads a configuration as the boot does.
    fn start(&mut self, conf: &str) {
        let sockets = self.sockets();
        std::fs::create_dir_all(&sockets).unwrap();
        must(&format!("chown frr:frr {}", sockets.display()));
        for program in ["zebra", "bgpd"] {
            let daemon = Command::new("ip")
                .args(["netns", "exec", &self.name])
                .arg(format!("/usr/lib/frr/{program}"))
                .args(["-N", &self.name, "-P", "0", "-f", "/dev/null"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            self.daemons.push(daemon.unwrap());
        }
        self.wait("daemons", || {
            let shown = self.show("show daemons");
            shown.contains("zebra") && shown.contains("bgpd")
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), conf).unwrap();
        let path = file.path().display();
        let dry = must(&format!("vtysh -C -f {path}"));
        assert_eq!(dry, "", "FRR's parser refuses a line");
        let said = must(&format!("vtysh -N {} -f {path}", self.name));
        // A path space has no vtysh.conf of its own.
        let mut said = said.lines().filter(|line| !line.contains("vtysh.conf"));
        assert_eq!(said.find(|line| line.contains(['%', '!'])), None);
    }

    fn show(&self, command: &str) -> String {
        run(&format!(
            "vtysh -N {} -c '{command}' 2>/dev/null",
            self.name
        ))
        .1
    }

    fn json(&self, command: &str) -> serde_json::Value {
        let text = self.show(&format!("{command} json"));
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Prefixes that bgpd has from its neighbours, of both families.
    fn learned(&self) -> Vec<String> {
        let mut out = Vec::new();
        for family in ["ipv4", "ipv6"] {
            let table = self.json(&format!("show bgp {family} unicast"));
            let routes = table["routes"].as_object().cloned().unwrap_or_default();
            for (prefix, paths) in routes {
                let paths = paths.as_array().cloned().unwrap_or_default();
                if paths.iter().any(|path| path["peerId"] != "(unspec)") {
                    out.push(prefix);
                }
            }
        }
        out.sort();
        out
    }

    #[track_caller]
    fn wait(&self, what: &str, is_done: impl Fn() -> bool) {
        let until = Instant::now() + DEADLINE;
        while !is_done() {
            if Instant::now() > until {
                let summary = self.show("show bgp summary");
                let routes = self.show("show ip route");
                let learned = self.learned();
                panic!(
                    "{}: no {what} in {learned:?}\n{summary}\n{routes}",
                    self.name
                );
            }
        }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        for mut daemon in self.daemons.drain(..) {
            daemon.kill().ok();
            daemon.wait().ok();
        }
        std::fs::remove_dir_all(self.sockets()).ok();
        run(&format!("ip netns del {}", self.name));
    }
}

/// A leaf that has a network of its own and tells a default route.
fn leaf(asn: u32, v4: &str, v6: &str) -> String {
    let family = |family: &str, network: &str| {
        format!(
            " address-family {family} unicast\n  network {network}\n  neighbor m0 activate\n  \
             neighbor m0 default-originate\n exit-address-family\n"
        )
    };
    format!(
        "router bgp {asn}\n bgp router-id 10.255.0.{}\n no bgp ebgp-requires-policy\n \
         no bgp default ipv4-unicast\n no bgp network import-check\n \
         neighbor m0 interface remote-as external\n{}{}exit\n",
        asn % 100,
        family("ipv4", v4),
        family("ipv6", v6)
    )
}

fn cable(machine: &Router, nic: &str, leaf: &Router) {
    let (machine, leaf) = (&machine.name, &leaf.name);
    must(&format!(
        "ip link add {nic} netns {machine} mtu 9000 type veth peer name m0 netns {leaf} mtu 9000 \
         && ip -n {machine} link set {nic} up && ip -n {leaf} link set m0 up"
    ));
}

fn frr_conf() -> String {
    let features = ImageFeatures {
        networkd: true,
        frr: true,
        ..ImageFeatures::default()
    };
    let items = files("routed", "", features);
    let item = items.iter().find(|item| item.path == "/etc/frr/frr.conf");
    let ItemState::File(_, bytes) = &item.unwrap().state else {
        panic!("no file");
    };
    String::from_utf8(bytes.clone()).unwrap()
}

#[test]
fn a_routed_machine_announces_its_addresses_to_both_leaves_and_nothing_else() {
    let is_there = |path| std::path::Path::new(path).exists();
    if !nix::unistd::geteuid().is_root() || !is_there("/usr/lib/frr/bgpd") {
        eprintln!("SKIPPED: needs root and FRR (Debian package frr)");
        return;
    }
    let mut machine = Router::new("m");
    let mut leaves = [Router::new("a"), Router::new("b")];
    cable(&machine, "lan0", &leaves[0]);
    cable(&machine, "lan1", &leaves[1]);
    leaves[0].start(&leaf(65_001, "203.0.113.0/24", "2001:db8:a::/48"));
    leaves[1].start(&leaf(65_002, "198.51.100.0/24", "2001:db8:b::/48"));
    machine.start(&frr_conf());

    let own = ["10.1.0.5/32", "192.0.2.9/32", "2001:db8::5/128"];
    let all = [
        "0.0.0.0/0",
        "198.51.100.0/24",
        "2001:db8:a::/48",
        "2001:db8:b::/48",
        "203.0.113.0/24",
        "::/0",
    ];
    // Both leaves have sent everything before the claim that none of it goes on.
    machine.wait("routes of both leaves", || machine.learned() == all);
    for leaf in &leaves {
        leaf.wait("addresses", || leaf.learned() == own);
    }
    for show in ["show ip route 0.0.0.0/0", "show ipv6 route ::/0"] {
        machine.wait("default route over both", || {
            let routes = machine.show(show);
            routes.contains("via lan0") && routes.contains("via lan1")
        });
    }
    for family in ["ipv4", "ipv6"] {
        let summary = machine.json(&format!("show bgp {family} unicast summary"));
        for (nic, sent) in [("lan0", &own), ("lan1", &own)] {
            let peer = &summary["peers"][nic];
            let count = sent
                .iter()
                .filter(|net| net.contains(':') == (family == "ipv6"));
            assert_eq!(peer["state"], "Established", "{summary}");
            assert_eq!(peer["pfxSnt"], count.count(), "{summary}");
        }
    }
    // The other leaf takes over, and what the machine learned there is still its own affair.
    must(&format!("ip -n {} link set m0 down", leaves[0].name));
    machine.wait("default route over lan1 alone", || {
        let routes = machine.show("show ip route 0.0.0.0/0");
        routes.contains("via lan1") && !routes.contains("via lan0")
    });
    assert_eq!(leaves[1].learned(), own);
    // The kernel's route has the cable again, not only FRR's.
    must(&format!("ip -n {} link set m0 up", leaves[0].name));
    for family in ["-4", "-6"] {
        machine.wait("default route of the kernel over both", || {
            let name = &machine.name;
            let (_, routes) = run(&format!("ip {family} -n {name} route show default"));
            routes.contains("dev lan0") && routes.contains("dev lan1")
        });
    }
}
