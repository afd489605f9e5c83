//! Keys, and settings, that change during an update.

use std::time::Instant;

use agents_update::{ProgramRole, UpdatePhase, UpdateStatus};

use super::releases::{CRASHES, Releases};
use super::server::ReleaseServer;
use super::supervised::{AgentHome, DEADLINE, Supervised};
use super::{await_rules, trusting};
use crate::namespace::{POLL, can_run};
use crate::site::Site;

/// Version of the release.
const VERSION: &str = "0.4.0";

/// The configuration with another key instead of, or beside, that of the release.
fn with_key(text: &str, own: &Releases, other: &Releases, is_beside: bool) -> String {
    let (own, other) = (own.signer.public(), other.signer.public());
    let keys = if is_beside {
        format!("keys: ['{own}', '{other}']")
    } else {
        format!("keys: ['{other}']")
    };
    text.replace(&format!("keys: ['{own}']"), &keys)
}

#[test]
fn a_key_that_is_removed_during_the_fetch_signs_nothing() {
    if !can_run() {
        return;
    }
    let site = Site::new("key");
    let folder = tempfile::tempdir().unwrap();
    let (releases, other) = (Releases::new(folder.path()), Releases::new(folder.path()));
    let home = AgentHome::new(&site, folder.path());
    let server = ReleaseServer::start(&site.router, folder.path());
    releases.publish("bad", VERSION, CRASHES, |_| {});
    let text = releases.config(VERSION, &server.url("held/bad"), &trusting(&server));
    home.configure(&with_key(&text, &releases, &other, true));
    let supervised = Supervised::start(&home);
    home.await_status("the fetch", |status| status.phase == UpdatePhase::Fetching);
    home.configure(&with_key(&text, &releases, &other, false));
    let until = Instant::now() + DEADLINE;
    // The agent has followed the file.
    while !server.held.closed.is_cancelled() {
        assert!(Instant::now() < until, "the connection is still open");
        assert_eq!(supervised.codes(), []);
        std::thread::sleep(POLL);
    }
    server.held.go.cancel();
    home.await_status("the key", |status| {
        status.phase == UpdatePhase::Failed && status.last_error.starts_with("key: ")
    });
    assert_eq!(supervised.codes(), []);
    assert_eq!(home.programs(), Vec::<String>::new());
    await_rules(&site);
}

#[test]
fn a_key_that_is_removed_before_the_first_start_signs_nothing() {
    if !can_run() {
        return;
    }
    let site = Site::new("keytrial");
    let folder = tempfile::tempdir().unwrap();
    let (releases, other) = (Releases::new(folder.path()), Releases::new(folder.path()));
    let home = AgentHome::new(&site, folder.path());
    let bad = releases.publish("bad", VERSION, CRASHES, |_| {});
    let text = releases.config(VERSION, &bad, "");
    home.configure(&text);
    let ended = home.start().wait().unwrap();
    assert_eq!(ended.code(), Some(75));
    home.configure(&with_key(&text, &releases, &other, false));
    let supervised = Supervised::start(&home);
    home.await_status("the key", |status| {
        status.role == ProgramRole::Installed && status.last_error.starts_with("key: ")
    });
    assert_eq!(supervised.codes(), []);
    await_rules(&site);
}

/// A configuration that cannot be parsed, by a mistake in an emergency.
fn broken(text: &str) -> String {
    text.replace(']', "")
}

fn disabled(text: &str) -> String {
    text.replace("enabled: true", "enabled: false")
}

/// The same that names no release.
fn unnamed(text: &str) -> String {
    text.replace(&format!("      controllerVersion: '{VERSION}'\n"), "")
}

/// Changes the configuration between the installation of a release and its first start, and expects that
/// the installed program goes on for a reason.
fn assert_not_started(test: &str, change: fn(&str) -> String, reason: &str) {
    let site = Site::new(test);
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let bad = releases.publish("bad", VERSION, CRASHES, |_| {});
    let text = releases.config(VERSION, &bad, "");
    home.configure(&text);
    let ended = home.start().wait().unwrap();
    assert_eq!(ended.code(), Some(75));
    home.configure(&change(&text));
    let supervised = Supervised::start(&home);
    home.await_status(reason, |status| {
        let mut failed = status.failed.iter();
        status.role == ProgramRole::Installed
            && failed.any(|failed| failed.reason.starts_with(reason))
    });
    assert_eq!(supervised.codes(), []);
    await_rules(&site);
}

#[test]
fn a_release_is_not_started_unless_the_configuration_wants_it() {
    if !can_run() {
        return;
    }
    assert_not_started("broken", broken, "configuration: ");
    assert_not_started("disabled", disabled, "selfUpdate: ");
    assert_not_started("unnamed", unnamed, "controllerVersion: ");
}

/// Changes the configuration during a fetch, and expects that it ends.
fn assert_fetch_ends(test: &str, change: fn(&str) -> String, is_over: fn(&UpdateStatus) -> bool) {
    let site = Site::new(test);
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let server = ReleaseServer::start(&site.router, folder.path());
    releases.publish("bad", VERSION, CRASHES, |_| {});
    let text = releases.config(VERSION, &server.url("held/bad"), &trusting(&server));
    home.configure(&text);
    let supervised = Supervised::start(&home);
    home.await_status("the fetch", |status| status.phase == UpdatePhase::Fetching);
    home.configure(&change(&text));
    home.await_status("the end", is_over);
    let until = Instant::now() + DEADLINE;
    while !server.held.closed.is_cancelled() {
        assert!(Instant::now() < until, "the connection is still open");
        std::thread::sleep(POLL);
    }
    assert_eq!(supervised.codes(), []);
}

#[test]
fn a_fetch_ends_with_self_update() {
    if !can_run() {
        return;
    }
    assert_fetch_ends("off", disabled, |status| status.phase == UpdatePhase::Off);
}

#[test]
fn an_earlier_configuration_signs_nothing() {
    if !can_run() {
        return;
    }
    assert_fetch_ends("invalid", broken, |status| {
        status.phase == UpdatePhase::Off && status.last_error.starts_with("configuration: ")
    });
}

/// `true` if a process has an argument.
fn has_process(argument: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let mut arguments = lines.flat_map(|line| {
        let parts = line.split(|byte| *byte == 0);
        parts.map(<[u8]>::to_vec).collect::<Vec<_>>()
    });
    arguments.any(|own| own == argument.as_bytes())
}

#[test]
fn a_program_that_is_refused_leaves_nothing() {
    if !can_run() {
        return;
    }
    let site = Site::new("leaves");
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let argument = format!("{}.25", 5_000_000 + std::process::id());
    let program = format!(
        "#!/bin/sh\nsetsid sleep {argument} </dev/null >/dev/null 2>&1 &\n\
         echo \"limit $(ulimit -t)\" >&2\n\
         if (: >>/proc/self/fd/0) 2>/dev/null; then echo writable >&2; fi\nexit 1\n"
    );
    let bad = releases.publish("bad", VERSION, program.as_bytes(), |_| {});
    home.configure(&releases.config(VERSION, &bad, ""));
    let supervised = Supervised::start(&home);
    home.await_status("the refusal", |status| {
        status.phase == UpdatePhase::Failed
            && status
                .last_error
                .contains("does not accept the configuration: limit 60; correct")
    });
    assert!(!has_process(&argument), "its process goes on");
    assert_eq!(home.programs(), Vec::<String>::new());
    assert_eq!(supervised.codes(), []);
}

#[test]
fn a_program_that_frees_itself_ends_with_its_check() {
    if !can_run() {
        return;
    }
    let site = Site::new("frees");
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let argument = format!("{}.5", 5_000_000 + std::process::id());
    let left = ["/dev/shm", "/tmp"].map(|place| format!("{place}/left-{argument}"));
    let program = format!(
        "#!/bin/sh\necho >{}\necho >{}\nexec setpriv --pdeathsig clear sleep {argument}\n",
        left[0], left[1]
    );
    let bad = releases.publish("bad", VERSION, program.as_bytes(), |_| {});
    let text = releases.config(VERSION, &bad, "");
    home.configure(&text);
    let supervised = Supervised::start(&home);
    let await_process = |is_there: bool| {
        let until = Instant::now() + DEADLINE;
        while has_process(&argument) != is_there {
            assert!(Instant::now() < until, "its process, {is_there}");
            std::thread::sleep(POLL);
        }
    };
    await_process(true);
    // The agent ends the check, as it does after a minute.
    home.configure(&disabled(&text));
    await_process(false);
    for path in left {
        assert!(!std::path::Path::new(&path).exists(), "{path}");
    }
    assert_eq!(supervised.codes(), []);
}
