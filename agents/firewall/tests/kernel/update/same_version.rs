//! Releases of one version are several: each is its signed head.

use agents_update::{ProgramRole, UpdatePhase, UpdateStatus};

use super::await_rules;
use super::releases::{CRASHES, Releases, agent, head_digest};
use super::supervised::{AgentHome, Supervised};
use crate::namespace::can_run;
use crate::site::Site;

/// Version of every release here, and of the installed program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `true` if a release runs.
fn is_current(status: &UpdateStatus, release: &str) -> bool {
    let digest = status.head_digest.as_ref().map(ToString::to_string);
    status.phase == UpdatePhase::Current && digest == Some(head_digest(release))
}

#[test]
fn another_release_of_the_version_that_runs_replaces_it() {
    if !can_run() {
        return;
    }
    let site = Site::new("same");
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let want = |release: &str| {
        home.configure(&releases.pinned(VERSION, release, &head_digest(release), ""));
    };
    // The installed program is that of a release: nothing is installed.
    let program = agent();
    let own = releases.publish("own", VERSION, &program, |_| {});
    want(&own);
    let supervised = Supervised::start(&home);
    home.await_status("the installed one", |status| is_current(status, &own));
    assert_eq!(home.status().unwrap().role, ProgramRole::Installed);
    assert_eq!(supervised.codes(), []);
    assert_eq!(home.programs(), Vec::<String>::new());

    let program = [program, b"\n".to_vec()].concat();
    let other = releases.publish("other", VERSION, &program, |_| {});
    want(&other);
    home.await_status("another one", |status| {
        is_current(status, &other) && status.role == ProgramRole::Confirmed
    });
    assert_eq!(supervised.codes(), [Some(75)]);
    // The same program, signed once more, and not valid any more: it runs already.
    let again = releases.publish("again", VERSION, &program, |manifest| {
        manifest.expires_s = manifest.not_before_s + 1;
    });
    want(&again);
    home.await_status("the new signature", |status| is_current(status, &again));
    assert_eq!(supervised.codes(), [Some(75)]);
    assert_eq!(home.programs().len(), 1);

    // One that fails refuses no other one.
    let bad = releases.publish("bad", VERSION, CRASHES, |_| {});
    want(&bad);
    home.await_status("the crash", |status| {
        status.phase == UpdatePhase::Refused && status.role == ProgramRole::Confirmed
    });
    assert_eq!(
        supervised.codes()[1..],
        [Some(75), Some(3), Some(3), Some(3)]
    );
    want(&again);
    home.await_status("the one before", |status| is_current(status, &again));
    want(&own);
    home.await_status("the first one", |status| {
        is_current(status, &own) && status.role == ProgramRole::Confirmed
    });
    await_rules(&site);
}
