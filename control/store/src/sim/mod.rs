//! The other side of the seams, for a simulation of a whole cluster in one thread.
//!
//! Nothing of this is in a product: the feature `sim` is asked for by the simulation only, and
//! `./dev check` fails when `metalmeshd` is built with it.

use std::cell::Cell;

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// From now on the random numbers of stores on this thread follow from `seed`; `None` ends that.
pub fn set_seed(seed: Option<u64>) {
    SEED.set(seed);
}

/// The next random number, if this thread has a seed.
pub(crate) fn random() -> Option<u64> {
    let state = SEED.get()?.wrapping_add(0x9e37_79b9_7f4a_7c15);
    SEED.set(Some(state));
    Some(mix(state))
}

/// Spreads a counter over all 64 bits (the finalizer of splitmix64).
fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
