//! Simulated disk, state engine and scheduling, for a simulation of a whole cluster in one thread.
//!
//! None of this is in a product: only the simulation enables the feature `sim`, and
//! `./dev check` fails when `metalmeshd` is built with it.

mod bug;
mod content;
mod disk;
mod engine;
mod fair_channel;
mod file;
mod probe;
mod watch;

use std::cell::Cell;

pub use bug::Bug;
pub(crate) use bug::{has, inject};
pub use disk::SimDisk;
pub use probe::{LoggedEntry, Probe};
pub(crate) use watch::FairWatch;

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Begins a run on this thread: the random numbers of its stores follow from `seed`. `Some(bug)`
/// puts a bug back into them.
pub fn begin(seed: u64, bug: Option<Bug>) {
    SEED.set(Some(seed));
    inject(bug);
}

/// Ends the run of [`begin`].
pub fn end() {
    SEED.set(None);
    inject(None);
}

/// The next random number of the run; `None` outside a run.
pub(crate) fn random() -> Option<u64> {
    let mut state = SEED.get()?;
    let number = next(&mut state);
    SEED.set(Some(state));
    Some(number)
}

/// The next of a sequence of numbers (splitmix64).
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
