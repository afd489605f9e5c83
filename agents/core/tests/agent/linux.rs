//! The agent on a real switch: a network namespace. Needs root; says so and passes without.

use std::process::Command;
use std::time::{Duration, Instant};

use agents_core::config::{Config, DriftPolicy};
use agents_kit::Agent;
use agents_nos::linux::Linux;
use proto_mesh::SwitchReport;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::fixture::{Control, Counted, PATIENCE, Running, Site, config, desired, heard};
use crate::offline::{Alone, LEAF1, LEAF2, kept};

/// Time in which a change by hand has to be healed.
const PROMISED: Duration = Duration::from_secs(5);
/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
const POLL: Duration = Duration::from_millis(10);

/// A namespace with the ports of a leaf, which goes away with the value.
pub(crate) struct Namespace(String);

impl Namespace {
    /// `None` without root, which is said.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("not run: network namespaces need root");
            return None;
        }
        let name = format!("mma{}-{test}", std::process::id());
        ip(&["netns", "add", &name]);
        let namespace = Self(name);
        namespace.ip("link set lo up");
        for port in ["swp1", "swp2", "up1"] {
            namespace.ip(&format!("link add {port} type veth peer name x{port}"));
            namespace.ip(&format!("link set x{port} up"));
        }
        Some(namespace)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    fn ip(&self, arguments: &str) -> String {
        let mut all = vec!["-n", self.0.as_str()];
        all.extend(arguments.split(' '));
        ip(&all)
    }

    /// `true` if the kernel shows this of a port: "master mmb27", "state DOWN".
    fn shows(&self, port: &str, what: &str) -> bool {
        self.ip(&format!("-o link show {port}")).contains(what)
    }

    pub(crate) async fn until(&self, port: &str, what: &str) {
        let shown = async {
            while !self.shows(port, what) {
                tokio::time::sleep(POLL).await;
            }
        };
        let waited = timeout(PATIENCE, shown).await;
        assert!(waited.is_ok(), "{port} never showed {what:?}");
    }

    /// Runs a future on a thread of its own inside the namespace.
    pub(crate) fn inside(&self, work: impl AsyncFnOnce() + Send) {
        let path = format!("/run/netns/{}", self.0);
        let enter = move || {
            let file = std::fs::File::open(path).unwrap();
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(work());
        };
        std::thread::scope(|scope| scope.spawn(enter).join().unwrap());
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn open(config: &Config) -> Linux {
    Linux::open(config.linux()).unwrap()
}

/// An agent with control, both inside the namespace; `swp1` is in segment 27.
async fn start(policy: DriftPolicy, control: &Control) -> (Running, JoinSet<()>) {
    let site = Site::new();
    control.desired.send_replace(desired(1, 27));
    let (address, server) = site.serve(control);
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let config = Config {
        drift: policy,
        ..config()
    };
    let switch = open(&config);
    let running = Running::start(agent, config, switch);
    heard(&control.report, |report| report.applied_generation == 1).await;
    (running, server)
}

/// The seen state of the port, once it is healed.
async fn healed(control: &Control) -> String {
    let is_healed = |report: &SwitchReport| report.drift.iter().any(|drift| drift.healed);
    let report = heard(&control.report, is_healed).await;
    let drift = report.drift.into_iter().find(|drift| drift.healed).unwrap();
    assert_eq!(drift.object, "port swp1");
    drift.seen
}

#[test]
fn a_port_pulled_out_by_hand_is_told_and_healed() {
    let Some(leaf) = Namespace::new("heal") else {
        return;
    };
    leaf.inside(async || {
        let control = Control::default();
        let (running, _server) = start(DriftPolicy::Heal, &control).await;
        assert!(leaf.shows("swp1", "master mmb27"));
        leaf.ip("link set swp1 nomaster");
        let edited = Instant::now();
        leaf.until("swp1", "master mmb27").await;
        assert!(edited.elapsed() < PROMISED, "{:?}", edited.elapsed());
        assert!(healed(&control).await.starts_with("without a place, up"));
        running.stop().await;
    });
}

#[test]
fn with_report_a_port_stays_down_and_never_outside_its_place() {
    let Some(leaf) = Namespace::new("report") else {
        return;
    };
    leaf.inside(async || {
        let control = Control::default();
        let (running, _server) = start(DriftPolicy::Report, &control).await;
        leaf.ip("link set swp1 down");
        let report = heard(&control.report, |report| !report.error.is_empty()).await;
        let held = "port swp1 was changed by hand and is held: in segment 27, down";
        assert!(report.error.starts_with(held), "{}", report.error);
        assert!(leaf.shows("swp1", "state DOWN"));
        leaf.ip("link set swp1 nomaster");
        let edited = Instant::now();
        leaf.until("swp1", "master mmb27").await;
        assert!(edited.elapsed() < PROMISED, "{:?}", edited.elapsed());
        assert!(healed(&control).await.starts_with("without a place, down"));
        running.stop().await;
    });
}

#[test]
fn a_device_in_the_way_keeps_one_port_and_no_other() {
    let Some(leaf) = Namespace::new("way") else {
        return;
    };
    leaf.ip("link add mmb27 type veth peer name theirs");
    leaf.inside(async || {
        let (site, control) = (Site::new(), Control::default());
        let mut order = desired(1, 27);
        order.ports[1].vni = 4000;
        control.desired.send_replace(order);
        let (address, _server) = site.serve(&control);
        let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
        let running = Running::start(agent, config(), open(&config()));
        leaf.until("swp2", "master mmb4000").await;
        let want = "segment 27: mmb27 exists and is not ours; port swp1 waits for segment 27";
        let report = heard(&control.report, |report| report.error == want).await;
        assert_eq!(report.applied_generation, 0);
        assert!(leaf.shows("swp1", "master mmq"), "nobody's meanwhile");
        leaf.ip("link del mmb27");
        leaf.until("swp1", "master mmb27").await;
        heard(&control.report, |report| {
            report.applied_generation == 1 && report.error.is_empty()
        })
        .await;
        running.stop().await;
    });
}

#[test]
fn a_last_good_state_configures_a_switch_without_control() {
    let Some(leaf) = Namespace::new("alone") else {
        return;
    };
    leaf.inside(async || {
        let site = Site::new();
        let alone = Alone::new(&site, &kept(&site, LEAF1, desired(7, 27)));
        let running = Running::start(alone.agent(), config(), open(&config()));
        leaf.until("swp1", "master mmb27").await;
        leaf.until("swp2", "master mmq").await;
        running.stop().await;
    });
}

#[test]
fn a_state_of_another_switch_leaves_a_switch_as_it_is() {
    let Some(leaf) = Namespace::new("foreign") else {
        return;
    };
    leaf.inside(async || {
        let site = Site::new();
        let alone = Alone::new(&site, &kept(&site, LEAF2, desired(7, 27)));
        let switch = Counted::new(open(&config()));
        let observations = switch.observations();
        let before = leaf.ip("-o link show");
        let running = Running::start(alone.agent(), config(), switch);
        let look = async {
            while observations.load(std::sync::atomic::Ordering::Relaxed) < 4 {
                // Each change by hand leads to a pass.
                leaf.ip("link set xup1 down");
                leaf.ip("link set xup1 up");
                tokio::time::sleep(POLL).await;
            }
        };
        timeout(PATIENCE, look).await.unwrap();
        running.stop().await;
        let devices = |text: &str| text.lines().count();
        assert_eq!(devices(&leaf.ip("-o link show")), devices(&before));
        assert!(!leaf.shows("swp1", "master"));
    });
}
