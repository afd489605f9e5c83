//! The agent itself: boot, changes of its file, drift, trials, and the text for others.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agents_firewall::compile::compile;
use agents_firewall::netlink::Kernel;
use agents_firewall::plan::plan;
use agents_firewall::run::{AgentFiles, run};
use agents_firewall::state::{FirewallState, Loaded};
use agents_firewall::trial::{Outcome, TrialConditions, apply};
use tokio_util::sync::CancellationToken;

use crate::namespace::{POLL, can_run};
use crate::site::{CONTROLLERS, INSIDE, NETWORKS, OUTSIDE, Site, arrives, rules, udp};

const DEADLINE: Duration = Duration::from_secs(30);
const DNS: &str = "    cwnp: {egress: [{name: dns, ports: [{protocol: UDP, port: 53}]}]}\n";
const NTP: &str = "    cwnp: {egress: [{name: ntp, ports: [{protocol: UDP, port: 123}]}]}\n";

fn text(rest: &str) -> String {
    format!("{NETWORKS}{rest}{CONTROLLERS}")
}

fn loaded(rest: &str) -> Loaded {
    Loaded::parse(text(rest)).unwrap()
}

fn files(folder: &Path) -> AgentFiles {
    AgentFiles {
        config: folder.join("config.yaml"),
        state_dir: folder.join("state"),
        rules_file: Some(folder.join("firewall-controller.v4")),
        metrics: None,
    }
}

/// Runs the agent in the router's namespace while work goes on.
pub(crate) fn with_agent(site: &Site, folder: &Path, work: impl FnOnce()) {
    let stop = CancellationToken::new();
    std::thread::scope(|scope| {
        let agent = scope.spawn(|| {
            site.router.inside(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(run(files(folder), stop.clone())).unwrap();
            });
        });
        let guard = stop.drop_guard_ref();
        work();
        drop(guard);
        agent.join().unwrap();
    });
}

fn await_rules(site: &Site, rest: &str) {
    let table = compile(&rules(rest));
    let until = Instant::now() + DEADLINE;
    while !site.with_kernel(|kernel| plan(&kernel.read().unwrap(), &table).is_empty()) {
        assert!(Instant::now() < until, "the rules are not in force: {rest}");
        std::thread::sleep(POLL);
    }
}

#[test]
fn the_agent_follows_its_file_and_keeps_the_last_good_one() {
    if !can_run() {
        return;
    }
    let site = Site::new("agent");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    fs::write(&config, text(DNS)).unwrap();
    with_agent(&site, folder.path(), || {
        await_rules(&site, DNS);
        fs::write(&config, text(NTP) + "# changed\n").unwrap();
        await_rules(&site, NTP);
        site.router.output("nft flush ruleset");
        await_rules(&site, NTP);
        // One bad object: the others come into force.
        let mixed = NTP.replace("[{name: ntp", "[{name: 'Bad Name'}, {name: ntp");
        fs::write(&config, text(&mixed) + "# mixed\n").unwrap();
        let written = folder.path().join("firewall-controller.v4");
        let until = Instant::now() + DEADLINE;
        while !fs::read_to_string(&written).is_ok_and(|text| text.contains("egress/ntp/0")) {
            assert!(Instant::now() < until, "the text is not written");
            std::thread::sleep(POLL);
        }
        await_rules(&site, NTP);
    });
    await_rules(&site, NTP);
    // A boot with a file that is no configuration: the last good one.
    site.router.output("nft flush ruleset");
    fs::write(&config, "nonsense").unwrap();
    with_agent(&site, folder.path(), || await_rules(&site, NTP));
    // A boot without anything: closed.
    site.router.output("nft flush ruleset");
    let empty = tempfile::tempdir().unwrap();
    let closed = compile(&agents_firewall::rule::RuleSet::default());
    with_agent(&site, empty.path(), || {
        let until = Instant::now() + DEADLINE;
        while !site.with_kernel(|kernel| plan(&kernel.read().unwrap(), &closed).is_empty()) {
            assert!(Instant::now() < until, "it is not closed");
            std::thread::sleep(POLL);
        }
    });
    let client = udp(&site.inside, INSIDE, 0);
    assert!(!arrives(&client, &udp(&site.outside, OUTSIDE, 53)));
}

/// Runs a trial in the router's namespace.
fn trial(site: &Site, state: &FirewallState, rest: &str, conditions: &TrialConditions) -> Outcome {
    site.router.inside(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let stop = CancellationToken::new();
        let kernel = Kernel::open().unwrap();
        let loaded = loaded(rest);
        runtime
            .block_on(apply(&kernel, state, &loaded, conditions, &stop))
            .unwrap()
    })
}

#[test]
fn a_trial_is_confirmed_or_rolled_back() {
    if !can_run() {
        return;
    }
    let site = Site::new("trial");
    let folder = tempfile::tempdir().unwrap();
    let state = FirewallState::open(&folder.path().join("state")).unwrap();
    let within = |seconds| TrialConditions {
        probes: Vec::new(),
        confirm_within: Some(Duration::from_secs(seconds)),
    };
    assert!(state.confirm().is_err(), "nothing waits");
    let rolled_back = |outcome| matches!(outcome, Outcome::RolledBack(_));
    assert!(rolled_back(trial(&site, &state, DNS, &within(1))));
    assert!(state.last_good().unwrap().is_none());
    let kept = std::thread::scope(|scope| {
        let running = scope.spawn(|| trial(&site, &state, DNS, &within(60)));
        let until = Instant::now() + DEADLINE;
        while state.confirm().is_err() {
            assert!(Instant::now() < until, "no trial waits");
            std::thread::sleep(POLL);
        }
        running.join().unwrap()
    });
    assert!(matches!(kept, Outcome::Kept(_)));
    await_rules(&site, DNS);
    assert!(rolled_back(trial(&site, &state, NTP, &within(1))));
    await_rules(&site, DNS);
    // Probes instead of people.
    let listener = site
        .router
        .inside(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let good = listener.local_addr().unwrap();
    let probes = |probe| TrialConditions {
        probes: vec![probe],
        confirm_within: None,
    };
    let bad = "127.0.0.1:1".parse().unwrap();
    assert!(rolled_back(trial(&site, &state, NTP, &probes(bad))));
    await_rules(&site, DNS);
    assert!(matches!(
        trial(&site, &state, NTP, &probes(good)),
        Outcome::Kept(_)
    ));
    await_rules(&site, NTP);
    let _lock = state.lock().unwrap();
    assert!(state.lock().is_err(), "one process changes rules");
}

/// The output of `nft monitor` in the namespace of the router.
struct Monitor(std::process::Child, BufReader<std::process::ChildStdout>);

impl Monitor {
    /// Waits until the monitor sees changes.
    fn start(site: &Site) -> Self {
        let mut child = Command::new("ip")
            .args([
                "netns",
                "exec",
                &site.router.0,
                "stdbuf",
                "-oL",
                "nft",
                "monitor",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        std::thread::scope(|scope| {
            let seen = scope.spawn(|| lines.read_line(&mut String::new()).unwrap());
            while !seen.is_finished() {
                site.router.output("nft add table ip noticed");
                site.router.output("nft delete table ip noticed");
            }
        });
        Self(child, lines)
    }

    /// The first transaction that makes a table of ours.
    fn first_of_ours(&mut self) -> String {
        let mut transaction = String::new();
        loop {
            let from = transaction.len();
            assert!(
                self.1.read_line(&mut transaction).unwrap() > 0,
                "{transaction}"
            );
            if transaction[from..].starts_with("# new generation") {
                if transaction.contains("add chain") {
                    return transaction;
                }
                transaction.clear();
            }
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_boot_closes_the_kernel_before_it_reads_the_last_good_rules() {
    if !can_run() {
        return;
    }
    let site = Site::new("close");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    fs::write(&config, text(DNS)).unwrap();
    with_agent(&site, folder.path(), || await_rules(&site, DNS));
    site.router.output("nft flush ruleset");
    let mut monitor = Monitor::start(&site);
    with_agent(&site, folder.path(), || await_rules(&site, DNS));
    let first = monitor.first_of_ours();
    assert!(first.contains("forward"), "{first}");
    assert!(!first.contains("cwnp/egress/dns"), "{first}");
    // After a mere restart of the agent the rules stay.
    let generation = site.with_kernel(|kernel| kernel.generation().unwrap());
    with_agent(&site, folder.path(), || await_rules(&site, DNS));
    assert_eq!(
        generation,
        site.with_kernel(|kernel| kernel.generation().unwrap())
    );
}
