use std::time::Duration;

use proto_release::{FileDigest, ReleaseVersion};
use proto_types::Digest;

use super::facts::{UpdateFacts, UpdateStep};
use super::machine::{CONFIRM_AFTER, CONFIRM_WITHIN, UpdateMachine};
use super::phase::{ProgramRole, UpdatePhase};
use super::program::{InstalledProgram, StoredProgram};
use super::record::UpdateRecord;
use super::release_id::ReleaseId;
use super::updating_program::ReleaseFields;
use super::wanted::WantedRelease;

fn version(text: &str) -> ReleaseVersion {
    text.parse().unwrap()
}

fn wanted(text: &str) -> WantedRelease {
    WantedRelease {
        version: version(text),
        url: format!("https://example.com/{text}"),
        head_digest: None,
    }
}

fn record() -> UpdateRecord {
    UpdateRecord::new(InstalledProgram {
        version: version("1.0.0"),
        bytes: 7,
        modified_s: 0,
    })
}

/// The record after so many failed trials of 1.1.0 with this signed head.
fn failed_head(times: u32, head: &[u8]) -> UpdateRecord {
    let mut record = record();
    for _ in 0..times {
        let digest = FileDigest::of(&b"x"[..]).unwrap();
        record.begin_trial(StoredProgram::new(version("1.1.0"), digest), head);
        record.fail_trial("bad", false);
    }
    record
}

/// The same, written by an earlier program: the head is not known.
fn failed(times: u32) -> UpdateRecord {
    failed_head(times, b"")
}

fn digest_of(head: &[u8]) -> Digest {
    FileDigest::of(head).unwrap().digest
}

/// A wanted release that is named by its head, too.
fn pinned(text: &str, head: &[u8]) -> WantedRelease {
    WantedRelease {
        head_digest: Some(digest_of(head)),
        ..wanted(text)
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn facts(seconds: u64, wanted: Option<&WantedRelease>) -> UpdateFacts<'_> {
    UpdateFacts {
        now: at(seconds),
        is_enabled: true,
        wanted,
        is_healthy: true,
        unhealthy: "its rules were not in force",
        delay: Duration::ZERO,
    }
}

fn machine(role: ProgramRole) -> UpdateMachine {
    machine_of(role, None)
}

/// A program 1.0.0 of the release with this signed head.
fn machine_of(role: ProgramRole, head: Option<&[u8]>) -> UpdateMachine {
    let release = ReleaseId {
        version: version("1.0.0"),
        head_digest: head.map(digest_of),
    };
    UpdateMachine::new(role, release)
}

#[test]
fn the_first_step_follows_from_the_facts() {
    use UpdateStep::{Fetch, Wait};
    let (same, other) = (wanted("1.0.0"), wanted("1.1.0"));
    let installed = ProgramRole::Installed;
    let of = |wanted| facts(5, wanted);
    let unhealthy = UpdateFacts {
        is_healthy: false,
        ..of(Some(&other))
    };
    let disabled = UpdateFacts {
        is_enabled: false,
        ..of(Some(&other))
    };
    let delayed = UpdateFacts {
        delay: at(1),
        ..of(Some(&other))
    };
    for (role, facts, record, expected) in [
        (
            installed,
            of(None),
            record(),
            Wait(UpdatePhase::NothingWanted),
        ),
        (
            installed,
            of(Some(&same)),
            record(),
            Wait(UpdatePhase::Current),
        ),
        (installed, of(Some(&other)), record(), Fetch(other.clone())),
        (
            ProgramRole::Confirmed,
            of(Some(&other)),
            record(),
            Fetch(other.clone()),
        ),
        (
            ProgramRole::Stray,
            of(Some(&other)),
            record(),
            Wait(UpdatePhase::Off),
        ),
        (
            ProgramRole::Trial,
            of(Some(&other)),
            record(),
            Wait(UpdatePhase::Trial),
        ),
        (installed, disabled, record(), Wait(UpdatePhase::Off)),
        (installed, unhealthy, record(), Wait(UpdatePhase::Unhealthy)),
        (installed, delayed, record(), Wait(UpdatePhase::Scheduled)),
        (
            installed,
            of(Some(&other)),
            failed(1),
            Wait(UpdatePhase::Scheduled),
        ),
        (
            installed,
            of(Some(&other)),
            failed(3),
            Wait(UpdatePhase::Refused),
        ),
        (
            installed,
            of(Some(&wanted("1.2.0"))),
            failed(3),
            Fetch(wanted("1.2.0")),
        ),
    ] {
        let found = machine(role).step(&facts, &record);
        assert_eq!(found, expected, "{role:?} {facts:?}");
    }
}

#[test]
fn a_release_is_its_version_and_its_head() {
    use UpdatePhase::{Current, Refused};
    let (none, a, b): (Option<&[u8]>, &[u8], &[u8]) = (None, b"a", b"b");
    for (running, wanted, record, expected) in [
        (none, wanted("1.0.0"), record(), Some(Current)),
        (Some(a), wanted("1.0.0"), record(), Some(Current)),
        (Some(a), pinned("1.0.0", a), record(), Some(Current)),
        (Some(a), pinned("1.0.0", b), record(), None),
        // The installed program may be another one of that version.
        (none, pinned("1.0.0", a), record(), None),
        (Some(a), wanted("1.1.0"), failed_head(3, a), Some(Refused)),
        (
            Some(a),
            pinned("1.1.0", a),
            failed_head(3, a),
            Some(Refused),
        ),
        (Some(a), pinned("1.1.0", b), failed_head(3, a), None),
        // Any release of that version may be the one that failed.
        (Some(a), pinned("1.1.0", b), failed(3), Some(Refused)),
    ] {
        let step =
            machine_of(ProgramRole::Confirmed, running).step(&facts(5, Some(&wanted)), &record);
        let expected = match expected {
            Some(phase) => UpdateStep::Wait(phase),
            None => UpdateStep::Fetch(wanted.clone()),
        };
        assert_eq!(step, expected, "{running:?} {wanted:?}");
    }
}

#[test]
fn a_program_that_is_recognized_is_current() {
    let (record, wanted) = (record(), pinned("1.0.0", b"a"));
    let mut machine = machine(ProgramRole::Installed);
    let step = machine.step(&facts(5, Some(&wanted)), &record);
    assert_eq!(step, UpdateStep::Fetch(wanted.clone()));
    machine.recognize(wanted.head_digest.clone());
    assert_eq!(machine.fetching(), None);
    let step = machine.step(&facts(6, Some(&wanted)), &record);
    assert_eq!(step, UpdateStep::Wait(UpdatePhase::Current));
}

#[test]
fn a_fetch_counts_while_its_release_is_wanted() {
    let (record, first, second) = (record(), wanted("1.1.0"), wanted("1.2.0"));
    let mut machine = machine(ProgramRole::Installed);
    assert!(!machine.takes(&first, Some(&first)), "it has not begun");
    machine.step(&facts(0, Some(&first)), &record);
    assert!(machine.takes(&first, Some(&first)));
    assert!(!machine.takes(&second, Some(&second)));
    // The source has named another one, or none, since the last step.
    assert!(!machine.takes(&first, Some(&second)));
    assert!(!machine.takes(&first, None));
}

#[test]
fn a_trial_confirms_itself_or_ends() {
    let record = record();
    let unhealthy = |seconds| UpdateFacts {
        is_healthy: false,
        ..facts(seconds, None)
    };
    let mut trial = machine(ProgramRole::Trial);
    let waiting = UpdateStep::Wait(UpdatePhase::Trial);
    let after = CONFIRM_AFTER.as_secs();
    assert_eq!(trial.step(&unhealthy(1), &record), waiting);
    assert_eq!(trial.step(&facts(2, None), &record), waiting);
    assert_eq!(trial.step(&facts(1 + after, None), &record), waiting);
    // The time begins anew with each failure.
    assert_eq!(trial.step(&unhealthy(1 + after), &record), waiting);
    assert_eq!(trial.step(&facts(2 + after, None), &record), waiting);
    assert_eq!(trial.step(&facts(1 + 2 * after, None), &record), waiting);
    let confirmed = trial.step(&facts(2 + 2 * after, None), &record);
    assert_eq!(confirmed, UpdateStep::Confirm);

    let mut trial = machine(ProgramRole::Trial);
    let within = CONFIRM_WITHIN.as_secs();
    assert_eq!(trial.step(&unhealthy(within - 1), &record), waiting);
    let ended = trial.step(&unhealthy(within), &record);
    assert!(matches!(ended, UpdateStep::GiveUp(reason) if reason.contains("1.0.0")));
}

#[test]
fn a_fetch_runs_once_and_is_repeated_with_growing_pauses() {
    let (record, other) = (record(), wanted("1.1.0"));
    let mut machine = machine(ProgramRole::Installed);
    let mut now = 0;
    for pause in [30, 60, 120, 240, 480, 960, 1920, 3600, 3600] {
        let step = machine.step(&facts(now, Some(&other)), &record);
        assert_eq!(step, UpdateStep::Fetch(other.clone()));
        let step = machine.step(&facts(now, Some(&other)), &record);
        assert_eq!(step, UpdateStep::Wait(UpdatePhase::Fetching));
        assert_eq!(machine.fetching(), Some(&other));
        machine.fetch_failed(at(now));
        assert_eq!(machine.fetching(), None);
        let step = machine.step(&facts(now + pause - 1, Some(&other)), &record);
        assert_eq!(step, UpdateStep::Wait(UpdatePhase::Failed), "{pause}");
        now += pause;
    }
    // An operator does not wait.
    machine.fetch_failed(at(now));
    machine.retry_now();
    let step = machine.step(&facts(now, Some(&other)), &record);
    assert_eq!(step, UpdateStep::Fetch(other));
}

#[test]
fn another_wanted_release_replaces_the_one_that_is_fetched() {
    let record = record();
    let mut machine = machine(ProgramRole::Installed);
    let (first, mut second) = (wanted("1.1.0"), wanted("1.2.0"));
    machine.step(&facts(0, Some(&first)), &record);
    let step = machine.step(&facts(1, Some(&second)), &record);
    assert_eq!(step, UpdateStep::Fetch(second.clone()));
    // The same version at another place is another release.
    second.url += "/mirror";
    let step = machine.step(&facts(2, Some(&second)), &record);
    assert_eq!(step, UpdateStep::Fetch(second));
    machine.step(&facts(3, None), &record);
    assert_eq!(machine.fetching(), None);
}

#[test]
fn a_version_that_was_not_confirmed_waits_longer() {
    let (record, other) = (failed(1), wanted("1.1.0"));
    let mut machine = machine(ProgramRole::Installed);
    for (seconds, expected) in [
        (0, UpdateStep::Wait(UpdatePhase::Scheduled)),
        (899, UpdateStep::Wait(UpdatePhase::Scheduled)),
        (900, UpdateStep::Fetch(other.clone())),
    ] {
        let step = machine.step(&facts(seconds, Some(&other)), &record);
        assert_eq!(step, expected, "{seconds}");
    }
}

#[test]
fn a_source_names_a_version_and_a_place() {
    let fields = ReleaseFields {
        version: "version",
        url: "url",
        digest: "digest",
    };
    let parse = |version: Option<&str>, url: Option<&str>| {
        WantedRelease::parse(&fields, version, url, None)
    };
    let url = Some("https://example.com/1.1.0");
    assert_eq!(parse(None, url), Ok(None));
    assert_eq!(parse(Some(""), url), Ok(None));
    assert_eq!(parse(Some("v1.1.0"), url), Ok(Some(wanted("1.1.0"))));
    let long = "a".repeat(2049);
    for (version, url, problem) in [
        ("latest", url, "version: \"latest\" is no version"),
        ("1.1.0", None, "url: it is missing"),
        ("1.1.0", Some(""), "url: it is missing"),
        (
            "1.1.0",
            Some(long.as_str()),
            "url: it has more than 2048 bytes",
        ),
    ] {
        let found = parse(Some(version), url).unwrap_err();
        assert!(found.starts_with(problem), "{found}");
    }
}
