//! The program itself, when it is killed or stopped.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agents_firewall::compile::compile;
use agents_firewall::model::NftTable;
use agents_firewall::plan::plan;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::namespace::{POLL, can_run};
use crate::site::{CONTROLLERS, NETWORKS, Site, rules};

const DEADLINE: Duration = Duration::from_secs(60);
/// Kills, each a little later after the start.
const KILLS: u32 = 40;

/// A configuration with many rules of two shapes.
fn rest(port: u16) -> String {
    let rule = |index: u16| {
        format!(
            "      - {{name: p{index}, to: [{{cidr: 203.0.113.{}/32}}], ports: [{{port: {}}}]}}\n",
            index % 250,
            port + index
        )
    };
    let all: String = (0..500).map(rule).collect();
    format!("    cwnp:\n      egress:\n{all}")
}

fn start(site: &Site, arguments: &[&str]) -> Child {
    Command::new("ip")
        .args(["netns", "exec", &site.router.0])
        .arg(env!("CARGO_BIN_EXE_metalmesh-firewall"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn holds(site: &Site, table: &NftTable) -> bool {
    site.with_kernel(|kernel| plan(&kernel.read().unwrap(), table).is_empty())
}

#[test]
fn a_program_that_is_killed_leaves_the_old_rules_or_the_new_ones() {
    if !can_run() {
        return;
    }
    let site = Site::new("kill");
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let versions = [rest(1000), rest(2000)];
    let tables = versions.each_ref().map(|rest| compile(&rules(rest)));
    let files = [0, 1].map(|index| {
        let file = folder.path().join(format!("{index}.yaml"));
        let text = format!("{NETWORKS}{}{CONTROLLERS}", versions[index]);
        fs::write(&file, text).unwrap();
        file
    });
    site.apply(&versions[0]);
    let mut changed = 0;
    let mut current = 0;
    for round in 0..KILLS {
        let next = 1 - current;
        let file = files[next].to_str().unwrap();
        let mut child = start(
            &site,
            &["apply", file, "--state-dir", state.to_str().unwrap()],
        );
        let until = Instant::now() + Duration::from_millis(u64::from(round) * 5);
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if holds(&site, &tables[next]) {
            changed += 1;
            current = next;
        } else {
            assert!(holds(&site, &tables[current]), "neither, in round {round}");
        }
    }
    println!("{changed} of {KILLS} kills came after the change");
}

#[test]
fn a_trial_that_is_stopped_is_rolled_back() {
    if !can_run() {
        return;
    }
    let site = Site::new("term");
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let write = |name: &str, rest: &str| {
        let file = folder.path().join(name);
        fs::write(&file, format!("{NETWORKS}{rest}{CONTROLLERS}")).unwrap();
        file
    };
    let (good, other) = (rest(1000), rest(2000));
    let (good_file, other_file) = (write("good.yaml", &good), write("other.yaml", &other));
    let state = state.to_str().unwrap();
    let mut applied = start(
        &site,
        &["apply", good_file.to_str().unwrap(), "--state-dir", state],
    );
    assert!(applied.wait().unwrap().success());
    let (good, other) = (compile(&rules(&good)), compile(&rules(&other)));
    let other_file = other_file.to_str().unwrap();
    let trial = [
        "apply",
        other_file,
        "--state-dir",
        state,
        "--confirm-within",
        "10m",
    ];
    let mut child = start(&site, &trial);
    let until = Instant::now() + DEADLINE;
    while !holds(&site, &other) {
        assert!(Instant::now() < until, "the trial does not begin");
        std::thread::sleep(POLL);
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    // The session that it was started in ends: the trial goes on.
    kill(pid, Signal::SIGHUP).unwrap();
    assert!(holds(&site, &other));
    kill(pid, Signal::SIGTERM).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(holds(&site, &good));
}
