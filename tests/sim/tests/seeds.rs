//! Some seeds in every test run, the same ones and fresh ones; the rest is `./dev sim`'s.

#![expect(clippy::print_stderr, reason = "a failure must name its seed")]

use control_store::sim::Bug;
use tests_sim::cli;
use tests_sim::run::run;

/// The seeds of every run.
const FIXED: std::ops::Range<u64> = 1..13;
/// Fresh seeds of a run.
const FRESH: u64 = 4;
/// Seeds within which a bug that is put back must be found.
const BUG_SEEDS: u64 = 60;

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn check(seeds: std::ops::Range<u64>) {
    let sum = cli::many(seeds, jobs(), None);
    let replays: Vec<String> = sum.failed.iter().map(|report| report.replay()).collect();
    assert!(replays.is_empty(), "REPLAY: {}", replays.join("; "));
}

#[test]
fn fixed_seeds_hold() {
    check(FIXED);
}

#[test]
fn fresh_seeds_hold() {
    let from = cli::fresh();
    eprintln!("fresh seeds {from} to {}", from + FRESH - 1);
    check(from..from + FRESH);
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [3, 7, 12] {
        let once = run(seed, None, false);
        let again = run(seed, None, false);
        assert_eq!(once, again, "seed {seed}");
        assert_ne!(once.trace, run(seed + 1, None, false).trace);
    }
}

/// The first seed that fails with `bug`; without the bug it must hold.
fn is_found(bug: Bug) {
    let found = (1..=BUG_SEEDS).find_map(|seed| {
        let report = run(seed, Some(bug), false);
        report.failure.map(|failure| (seed, failure))
    });
    let Some((seed, failure)) = found else {
        panic!("{} is not found within {BUG_SEEDS} seeds", bug.name());
    };
    eprintln!("{}: seed {seed}: {failure}", bug.name());
    let healthy = run(seed, None, false);
    assert_eq!(healthy.failure, None, "seed {seed} without the bug");
}

#[test]
fn an_early_acknowledgement_is_found() {
    is_found(Bug::AckBeforeFsync);
}

#[test]
fn a_stale_membership_is_found() {
    is_found(Bug::StaleMembershipAfterSnapshot);
}

#[test]
fn a_skipped_read_index_is_found() {
    is_found(Bug::SkippedReadIndex);
}

#[test]
fn a_read_that_joins_a_running_round_is_found() {
    is_found(Bug::JoinedRunningRound);
}

#[test]
fn a_gap_in_a_watch_is_found() {
    is_found(Bug::WatchGapOnResume);
}
