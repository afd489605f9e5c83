use std::collections::BTreeSet;

use proto_release::{FileDigest, ReleaseVersion};

use super::phase::ProgramRole;
use super::program::{InstalledProgram, StoredProgram, TrialProgram};
use super::record::{ATTEMPTS_MAX, UpdateRecord};
use super::release_id::ReleaseId;
use super::start::{STARTS_MAX, after_failed_start, drop_distrusted, plan_start};
use super::start_trust::StartTrust;

fn version(text: &str) -> ReleaseVersion {
    text.parse().unwrap()
}

fn installed(bytes: u64) -> InstalledProgram {
    InstalledProgram {
        version: version("1.0.0"),
        bytes,
        modified_s: 1_700_000_000,
    }
}

fn stored(text: &str) -> StoredProgram {
    StoredProgram::new(version(text), FileDigest::of(text.as_bytes()).unwrap())
}

/// A release with this signed head. An empty one is not known.
fn release(text: &str, head: &[u8]) -> ReleaseId {
    let digest = FileDigest::of(head).unwrap().digest;
    ReleaseId {
        version: version(text),
        head_digest: (!head.is_empty()).then_some(digest),
    }
}

fn whole(programs: &[&StoredProgram]) -> BTreeSet<String> {
    programs
        .iter()
        .map(|program| program.file.clone())
        .collect()
}

/// A record with 1.1.0 confirmed and 1.2.0 on trial.
fn record(starts: u32) -> UpdateRecord {
    let mut record = UpdateRecord::new(installed(7));
    record.begin_trial(stored("1.1.0"), b"");
    record.confirm_trial();
    record.begin_trial(stored("1.2.0"), b"");
    if let Some(trial) = &mut record.trial {
        trial.starts = starts;
    }
    record
}

#[test]
fn a_start_uses_the_trial_then_the_confirmed_then_the_installed_program() {
    let (old, new) = (stored("1.1.0"), stored("1.2.0"));
    let both = whole(&[&old, &new]);
    for (starts, files, expected) in [
        (0, &both, Some(&new)),
        (STARTS_MAX - 1, &both, Some(&new)),
        (STARTS_MAX, &both, Some(&old)),
        (0, &whole(&[&old]), Some(&old)),
        (0, &whole(&[&new]), Some(&new)),
        (STARTS_MAX, &whole(&[&new]), None),
        (0, &whole(&[]), None),
    ] {
        let plan = plan_start(record(starts), &installed(7), files);
        assert_eq!(plan.program.as_ref(), expected, "{starts} {files:?}");
        let is_trial = expected == Some(&new);
        assert_eq!(plan.record.trial.is_some(), is_trial);
        assert_eq!(plan.notes.is_empty(), is_trial, "{:?}", plan.notes);
        // The start of a trial is counted before it begins.
        let counted = plan.record.trial.map(|trial| trial.starts);
        assert_eq!(counted, is_trial.then_some(starts + 1));
    }
}

#[test]
fn a_trial_that_never_confirms_itself_ends_and_is_remembered() {
    let files = whole(&[&stored("1.1.0"), &stored("1.2.0")]);
    let mut kept = record(0);
    let mut programs = Vec::new();
    for _ in 0..6 {
        let plan = plan_start(kept, &installed(7), &files);
        programs.push(plan.program.map(|program| program.version.to_string()));
        kept = plan.record;
    }
    let [new, old] = ["1.2.0", "1.1.0"].map(|text| Some(text.to_owned()));
    let expected = [new.clone(), new.clone(), new, old.clone(), old.clone(), old];
    assert_eq!(programs, expected);
    assert_eq!(
        kept.refusal(&release("1.2.0", b"")),
        Some("version 1.2.0: it did not confirm itself in 3 starts")
    );
    assert_eq!(kept.refusal(&release("1.1.0", b"")), None);
}

#[test]
fn an_installed_program_that_was_replaced_is_used() {
    let files = whole(&[&stored("1.1.0"), &stored("1.2.0")]);
    let plan = plan_start(record(0), &installed(8), &files);
    assert_eq!(plan.program, None);
    assert_eq!(plan.record, UpdateRecord::new(installed(8)));
}

/// Signed heads of releases.
type Heads<'a> = &'a [&'a [u8]];

/// Heads of the release that has confirmed itself and of the one on trial, the trusted ones, and the
/// versions that are left of them.
type TrustCase<'a> = (&'a [u8], &'a [u8], Heads<'a>, [bool; 2]);

/// Files that trust the releases with these signed heads.
struct Trusted<'a>(Heads<'a>);

impl Trusted<'_> {
    fn problem(&self, head: &[u8]) -> Option<String> {
        (!self.0.contains(&head)).then(|| "key: it was removed".to_owned())
    }
}

impl StartTrust for Trusted<'_> {
    fn trial_problem(&self, trial: &TrialProgram) -> Option<String> {
        self.problem(&trial.signed_head().unwrap_or_default())
    }

    fn confirmed_problem(&self, head: &[u8]) -> Option<String> {
        self.problem(head)
    }
}

#[test]
fn a_release_whose_key_was_removed_is_not_started_any_more() {
    let cases: [TrustCase<'_>; 6] = [
        (b"old", b"new", &[b"old", b"new"], [true, true]),
        (b"old", b"new", &[b"old"], [true, false]),
        (b"old", b"new", &[b"new"], [false, true]),
        (b"old", b"new", &[], [false, false]),
        // An earlier program has confirmed it.
        (b"", b"new", &[b"new"], [true, true]),
        (b"", b"new", &[], [true, false]),
    ];
    for (confirmed, trial, trusted, left) in cases {
        let mut record = UpdateRecord::new(installed(7));
        record.begin_trial(stored("1.1.0"), confirmed);
        record.confirm_trial();
        record.begin_trial(stored("1.2.0"), trial);
        let notes = drop_distrusted(&mut record, &Trusted(trusted));
        let found = [record.confirmed.is_some(), record.trial.is_some()];
        assert_eq!(found, left, "{trusted:?}");
        let dropped = left.iter().filter(|is_left| !**is_left).count();
        assert_eq!(notes.len(), dropped, "{notes:?}");
        let files = whole(&[&stored("1.1.0"), &stored("1.2.0")]);
        let plan = plan_start(record, &installed(7), &files);
        assert_eq!(plan.program.is_some(), left != [false, false]);
    }
    let mut record = UpdateRecord::new(installed(7));
    record.begin_trial(stored("1.1.0"), b"old");
    record.confirm_trial();
    let notes = drop_distrusted(&mut record, &Trusted(&[]));
    let note = "version 1.1.0: key: it was removed; the installed program is used";
    assert_eq!(notes, [note]);
}

#[test]
fn a_program_that_cannot_be_started_is_not_started_again() {
    let (old, new) = (stored("1.1.0"), stored("1.2.0"));
    let after = after_failed_start(record(1), &new, "no such format");
    assert_eq!(after.trial, None);
    assert_eq!(after.confirmed, Some(old.clone()));
    assert_eq!(after.refusal(&new.release()), Some("no such format"));
    let after = after_failed_start(after, &old, "no such format");
    assert_eq!(after.confirmed, None);
}

#[test]
fn a_version_has_three_attempts_unless_it_crashes() {
    let mut record = record(0);
    let new = release("1.2.0", b"");
    for attempt in 1..=ATTEMPTS_MAX {
        record.begin_trial(stored("1.2.0"), b"");
        record.fail_trial("too late", false);
        assert_eq!(record.attempts(&new), attempt);
        assert_eq!(record.refusal(&new).is_some(), attempt == ATTEMPTS_MAX);
    }
    // One that works in the end is forgotten.
    record.begin_trial(stored("1.2.0"), b"");
    record.confirm_trial();
    assert_eq!(record.failed, []);
    // The oldest goes.
    for minor in 0..20 {
        record.begin_trial(stored(&format!("2.{minor}.0")), b"");
        record.fail_trial("bad", true);
    }
    assert_eq!(record.failed.len(), 8);
    assert!(record.refusal(&release("2.19.0", b"")).is_some());
    assert!(record.refusal(&release("2.0.0", b"")).is_none());
}

#[test]
fn releases_of_one_version_fail_each_for_itself() {
    let mut record = UpdateRecord::new(installed(7));
    let [bad, good] = [b"a", b"b"].map(|head| release("1.2.0", head));
    record.begin_trial(stored("1.2.0"), b"a");
    record.fail_trial("bad", true);
    assert_eq!(record.refusal(&bad), Some("bad"));
    assert_eq!((record.refusal(&good), record.attempts(&good)), (None, 0));
    assert_eq!(record.last_failure(&good), None);
    record.begin_trial(stored("1.2.0"), b"b");
    record.confirm_trial();
    let confirmed = record.confirmed.as_ref().unwrap();
    assert_eq!(confirmed.release(), good);
    assert_eq!(record.refusal(&bad), Some("bad"));
    let kept = serde_json::to_vec(&record).unwrap();
    assert_eq!(UpdateRecord::decode(&kept), Some(record.clone()));
    // An earlier installed program has dropped the head: any of them may have failed.
    record.begin_trial(stored("1.2.0"), b"");
    record.fail_trial("late", false);
    assert_eq!(record.failed.len(), 1);
    assert_eq!(record.refusal(&good), Some("late"));
}

#[test]
fn a_program_is_recognized_by_its_role() {
    let wanted = release("1.1.0", b"a");
    let mut record = record(0);
    record.recognize(ProgramRole::Confirmed, b"a", wanted.head_digest.clone());
    let confirmed = record.confirmed.as_ref().unwrap();
    assert_eq!(confirmed.release(), wanted);
    // The key that has signed it once more may be the only one from now on.
    assert_eq!(confirmed.signed_head().as_deref(), Some(&b"a"[..]));
    assert_eq!(record.installed_head, None);
    record.recognize(ProgramRole::Installed, b"a", wanted.head_digest.clone());
    assert_eq!(record.installed_head, wanted.head_digest);
    // Another installed program is another one.
    let plan = plan_start(record, &installed(8), &whole(&[]));
    assert_eq!(plan.record.installed_head, None);
}

/// Installed programs of every version read this text: it may grow, and never change.
const KEPT: &str = r#"{"format":1,"installed":{"version":"1.0.0","bytes":7,"modified_s":1700000000},"confirmed":{"version":"1.1.0","file":"1.1.0-1d158b9a1b2cd6a0","program":{"bytes":5,"digest":"sha256:1d158b9a1b2cd6a0000000000000000000000000000000000000000000000000"}},"trial":{"program":{"version":"1.2.0","file":"1.2.0-0000000000000000","program":{"bytes":5,"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}},"starts":2},"failed":[{"version":"1.3.0","attempts":3,"reason":"bad"}]}"#;

#[test]
fn a_record_is_read_by_programs_of_every_version() {
    let record = UpdateRecord::decode(KEPT.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), KEPT);
    assert_eq!(record.trial.as_ref().unwrap().starts, 2);
    // Digests were added.
    let digest = format!("sha256:{}", "ab".repeat(32));
    let named = format!("\"head_digest\":\"{digest}\"");
    let mut now = KEPT.to_owned();
    for (from, to) in [
        ("}},\"trial\"", format!("}},{named}}},\"trial\"")),
        ("\"attempts\"", format!("{named},\"attempts\"")),
        ("}]}", format!("}}],\"installed_head\":\"{digest}\"}}")),
    ] {
        now = now.replacen(from, &to, 1);
    }
    let with_digests = UpdateRecord::decode(now.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&with_digests).unwrap(), now);
    assert_eq!(with_digests.installed_head.unwrap().to_string(), digest);
    // A later program may add fields.
    let grown = KEPT.replacen("\"format\":1", "\"format\":1,\"later\":[1]", 1);
    assert_eq!(UpdateRecord::decode(grown.as_bytes()), Some(record));
    for (from, to) in [
        ("\"format\":1", "\"format\":2"),
        ("1.2.0-0000000000000000", "../hammer"),
        ("1.2.0-0000000000000000", ".hidden"),
        ("1.2.0-0000000000000000", ""),
        ("\"starts\":2", "\"starts\":-1"),
        ("}]}", "}]"),
    ] {
        let damaged = KEPT.replacen(from, to, 1);
        assert_ne!(damaged, KEPT);
        assert_eq!(UpdateRecord::decode(damaged.as_bytes()), None, "{to}");
    }
}
