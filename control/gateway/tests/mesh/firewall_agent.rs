//! From a write in control to the rules in a kernel: control and the real agent in a network
//! namespace of their own. Printed as skipped without the rights for one.

#![allow(
    clippy::print_stdout,
    reason = "says that it was skipped, and how long the way took"
)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use agents_firewall::config::{Config, SourceName};
use agents_firewall::netlink::Kernel;
use agents_firewall::run::{AgentFiles, run};
use agents_kit::StateDir;
use agents_kit::state_dir::StoredSession;
use control_presence::{CandidateOutcome, FirewallTotals};
use control_state::FirewallStatus;
use control_state::life::userdata_contents;
use nix::sched::{CloneFlags, unshare};
use proto_firewall::RuleOwner;
use tokio_util::sync::CancellationToken;

use crate::firewall::Site;
use crate::firewall_questions::{compare, web};
use crate::fixture::PATIENCE;

/// Runs a test in a network namespace of its own. The threads of its runtime inherit it.
pub(crate) fn in_namespace<F: Future<Output = ()>>(test: fn() -> F) {
    let on_thread = move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            println!("skipped: no right to make a network namespace");
            return;
        }
        let up = Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(up.unwrap().success());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(test());
    };
    std::thread::scope(|scope| scope.spawn(on_thread).join().unwrap());
}

/// Puts the identity of the installed system and the configuration of the agent into a folder.
pub(crate) async fn install_agent(site: &Site, folder: &Path) -> AgentFiles {
    let session = StoredSession {
        credential: site.credential().await,
        control: vec![site.control.address().to_string()],
        ticket_id: String::new(),
    };
    let identity = StateDir::open(&folder.join("identity")).unwrap();
    identity.store(&session).unwrap();
    files(folder)
}

fn files(folder: &Path) -> AgentFiles {
    let config = folder.join("config.yaml");
    let identity = folder.join("identity");
    let text = format!(
        "sources: {{metal: {{identityDir: {}}}}}\ncontrollers:\n  firewall: {{source: metal}}\n  \
         cwnp: {{source: metal}}\n  service: {{source: metal}}\n",
        identity.display()
    );
    fs::write(&config, text).unwrap();
    AgentFiles {
        config,
        state_dir: folder.join("state"),
        rules_file: None,
        metrics: None,
    }
}

/// Waits for the counter of a rule in the kernel.
pub(crate) async fn await_counter(name: &str, wanted: bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let counters = Kernel::open().unwrap().counters().unwrap_or_default();
        if counters.iter().any(|(counter, _)| counter == name) == wanted {
            return;
        }
        assert!(Instant::now() < until, "{name}: {counters:?}");
        tokio::task::yield_now().await;
    }
}

async fn await_applied(site: &Site, revision: u64) {
    let set = site.set(RuleOwner::Tenant).to_string();
    let until = Instant::now() + PATIENCE;
    loop {
        let applied = site.control.store.read_local(|tables| {
            let status = tables.get::<FirewallStatus>(&site.machine);
            status.and_then(|status| status.applied_sets.get(&set).copied())
        });
        if applied.unwrap() == Some(revision) {
            return;
        }
        assert!(
            Instant::now() < until,
            "revision {revision} is not reported"
        );
        tokio::task::yield_now().await;
    }
}

/// Waits for the first counters of the kernel.
async fn await_statistics(site: &Site) {
    let until = Instant::now() + PATIENCE;
    let firewalls = site.control.presence.firewalls();
    loop {
        let numbers = firewalls.numbers(site.machine, site.allocation()).await;
        if let Some(numbers) = numbers.unwrap() {
            for name in FirewallTotals::NAMES {
                let mut counters = numbers.counters.iter();
                assert!(counters.any(|counter| counter.name == name), "{name}");
            }
            return;
        }
        assert!(Instant::now() < until, "no counters are reported");
        tokio::task::yield_now().await;
    }
}

async fn whole_way() {
    let site = Site::start().await;
    site.allocate_firewall().await;
    let folder = tempfile::tempdir().unwrap();
    let files = install_agent(&site, folder.path()).await;
    let set = site.set(RuleOwner::Tenant);
    site.write(&set, 80).await;
    let stop = CancellationToken::new();
    let work = async {
        await_counter("cwnp/egress/web/0", true).await;
        await_applied(&site, 1).await;
        let begun = Instant::now();
        site.write_named(&set, "tls", 443).await;
        await_counter("cwnp/egress/tls/0", true).await;
        println!("{:?} from the write to the kernel", begun.elapsed());
        await_applied(&site, 2).await;
        await_counter("cwnp/egress/web/0", false).await;
        // The agent compares other rules, and applies nothing.
        let CandidateOutcome::Compared(effect) = compare(&site, &set, &web(80)).await else {
            panic!("the firewall does not answer");
        };
        assert_eq!(effect.error, "");
        assert_eq!((effect.added, effect.removed, effect.rules), (1, 1, 1));
        assert!(effect.entries > 0);
        await_counter("cwnp/egress/tls/0", true).await;
        await_statistics(&site).await;
        stop.cancel();
    };
    let (ran, ()) = tokio::join!(run(files.clone(), stop.clone()), work);
    ran.unwrap();

    // Control is away, and somebody took the table away: a start brings the last good rules.
    site.control.stop().await;
    await_counter("cwnp/egress/tls/0", true).await;
    let gone = Command::new("nft")
        .args(["delete", "table", "inet", "metalmesh-firewall"])
        .status();
    assert!(gone.unwrap().success());
    let stop = CancellationToken::new();
    let work = async {
        await_counter("cwnp/egress/tls/0", true).await;
        stop.cancel();
    };
    let (ran, ()) = tokio::join!(run(files, stop.clone()), work);
    ran.unwrap();
}

/// The file that control has hammer write into a firewall.
#[tokio::test(flavor = "multi_thread")]
async fn the_agent_takes_the_configuration_that_control_makes() {
    let site = Site::start().await;
    site.allocate_firewall().await;
    let machine = site.control.machine(site.machine);
    let allocation = machine.allocation.as_ref().unwrap();
    let made = userdata_contents(allocation);
    assert_eq!(made[0].path, "/etc/firewall-controller/config.yaml");
    let config = Config::parse(&made[0].content).unwrap();
    assert_eq!(config.name(), allocation.hostname);
    let sources: Vec<SourceName> = config.controllers.sources().collect();
    assert!(sources.iter().all(|source| *source == SourceName::Metal));
    assert_eq!(sources.len(), 3, "{sources:?}");
    let metal = config.sources.metal.unwrap();
    assert_eq!(metal.project_id, Some(allocation.project.to_string()));
    let update = &config.controllers.firewall.self_update;
    assert!(update.enabled && !update.local_prefixes.is_empty());
    assert_eq!(update.keys, [], "they do not come from control");
    site.control.stop().await;
}

#[test]
fn a_write_in_control_reaches_the_kernel_and_outlives_control() {
    in_namespace(whole_way);
}
