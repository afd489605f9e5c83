//! A site with a hundred tenants in every test run; an hour of it is `./dev sim --tenants`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use tests_sim::cli;
use tests_sim::tenants::{TenantReport, run};

/// The seed of every run.
const FIXED: u64 = 24;
/// Minutes of faults.
const MINUTES: u64 = 1;
/// With fewer bindings, or leases that their date ended, the run of the fixed seed proves little.
const BINDINGS: u64 = 60;
const OVERRUN_LEASES: u64 = 1;

/// Runs seeds, each on a thread of its own.
fn run_each<const N: usize>(seeds: [u64; N], minutes: u64) -> [TenantReport; N] {
    std::thread::scope(|scope| {
        let runs = seeds.map(|seed| scope.spawn(move || run(seed, minutes, false)));
        runs.map(|run| run.join().unwrap())
    })
}

#[test]
fn a_hundred_tenants_share_a_site_under_faults() {
    let fresh = cli::fresh();
    eprintln!("fresh seed {fresh}");
    let reports = run_each([FIXED, fresh], MINUTES);
    for report in &reports {
        assert_eq!(report.failure, None, "REPLAY: {}", report.replay());
    }
    let [fixed, _] = reports;
    let (bindings, overrun) = (fixed.figures.bindings, fixed.figures.overrun_leases);
    let is_busy = bindings >= BINDINGS && overrun >= OVERRUN_LEASES;
    assert!(is_busy, "it proves little: {fixed:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let [once, again] = run_each([FIXED, FIXED], 0);
    assert_eq!(once, again);
}
