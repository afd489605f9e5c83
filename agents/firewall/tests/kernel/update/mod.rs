//! Self-update: real programs replace each other, or do not.

mod killed;
mod refused;
mod releases;
mod removed;
mod same_version;
mod server;
mod supervised;

use std::time::Instant;

use agents_firewall::compile::compile;
use agents_firewall::plan::plan;
use agents_update::{ProgramRole, UpdatePhase};

use crate::namespace::{POLL, can_run};
use crate::site::{Site, rules};
use releases::{CRASHES, RULES, Releases, agent};
use server::ReleaseServer;
use supervised::{AgentHome, DEADLINE, Supervised};

/// Settings of a client of the test's server.
fn trusting(server: &ReleaseServer) -> String {
    let file = server.authority.display();
    format!("      caCertificate: {file}\n      localPrefixes: [127.0.0.0/8]\n")
}

fn await_rules(site: &Site) {
    let table = compile(&rules(RULES));
    let until = Instant::now() + DEADLINE;
    while !site.with_kernel(|kernel| plan(&kernel.read().unwrap(), &table).is_empty()) {
        assert!(Instant::now() < until, "the rules are not in force");
        std::thread::sleep(POLL);
    }
}

#[test]
fn the_agent_replaces_itself_by_a_signed_release() {
    if !can_run() {
        return;
    }
    let site = Site::new("upd");
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let server = ReleaseServer::start(&site.router, folder.path());
    let program = agent();
    releases.publish("new", "0.2.0", &program, |_| {});
    let more = trusting(&server);
    home.configure(&releases.config("0.1.0", &server.url("new"), &more));
    let supervised = Supervised::start(&home);
    home.await_status("the first", |status| status.phase == UpdatePhase::Current);
    await_rules(&site);
    let generation = site.with_kernel(|kernel| kernel.generation().unwrap());

    home.configure(&releases.config("v0.2.0", &server.url("new"), &more));
    home.await_status("the new one", |status| {
        status.version.to_string() == "0.2.0" && status.role == ProgramRole::Confirmed
    });
    assert_eq!(supervised.codes(), [Some(75)]);
    let [stored]: [String; 1] = home.programs().try_into().unwrap();
    assert!(stored.starts_with("0.2.0-"), "{stored}");
    assert_eq!(
        supervised.program(),
        home.state().join("programs").join(&stored)
    );
    let text = home.update("status");
    assert!(
        text.starts_with("version: 0.2.0\nwanted:  0.2.0\nphase:   current\n"),
        "{text}"
    );
    // Its rules were in force all the time.
    let after = site.with_kernel(|kernel| kernel.generation().unwrap());
    assert_eq!(generation, after);

    // Never below the version that runs, unless the release is signed for that.
    let old = releases.publish("old", "0.1.5", &program, |_| {});
    home.configure(&releases.config("0.1.5", &old, &more));
    home.await_status("a downgrade", |status| {
        status
            .last_error
            .starts_with("downgrade: 0.1.5 is older than 0.2.0")
    });
    let meant = releases.publish("meant", "0.1.5", &program, |manifest| {
        manifest.allow_downgrade_from = vec!["0.2.0".parse().unwrap()];
    });
    home.configure(&releases.config("0.1.5", &meant, &more));
    home.await_status("a downgrade that is meant", |status| {
        status.version.to_string() == "0.1.5" && status.role == ProgramRole::Confirmed
    });
    assert_eq!(supervised.codes(), [Some(75), Some(75)]);
    assert_eq!(home.programs().len(), 1, "{:?}", home.programs());
    await_rules(&site);
}

#[test]
fn a_program_that_crashes_at_its_start_is_rolled_back() {
    if !can_run() {
        return;
    }
    let site = Site::new("crash");
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let bad = releases.publish("bad", "0.3.0", CRASHES, |_| {});
    home.configure(&releases.config("0.1.0", &bad, ""));
    let supervised = Supervised::start(&home);
    await_rules(&site);
    let generation = site.with_kernel(|kernel| kernel.generation().unwrap());
    let reason = "version 0.3.0: it did not confirm itself in 3 starts";
    let crashed = [Some(75), Some(3), Some(3), Some(3)];
    for round in 1..=2 {
        home.configure(&releases.config("0.3.0", &bad, &format!("#{round}\n")));
        home.await_status("the crash", |status| {
            status.phase == UpdatePhase::Refused
                && status.last_error == reason
                && supervised.codes() == crashed.repeat(round)
        });
        let status = home.status().unwrap();
        assert_eq!(status.role, ProgramRole::Installed);
        assert_eq!(status.version.to_string(), "0.1.0");
        await_rules(&site);
        // An operator has it tried again.
        home.update("retry");
    }
    // The rules stayed in the kernel meanwhile.
    let after = site.with_kernel(|kernel| kernel.generation().unwrap());
    assert_eq!(generation, after);
}
