//! Facts about the process and its machine, for `DoctorService`.

mod premises;

use std::fmt::Debug;

pub use premises::{Premises, TurnedAway};

/// Collects facts about the process and its machine.
pub trait Surveyor: Debug + Send + Sync {
    /// The facts of this moment. May read small files, and blocks meanwhile.
    fn look(&self) -> Premises;
}

/// Finds nothing: for tests and benchmarks without a server process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Surveyor for Nowhere {
    fn look(&self) -> Premises {
        Premises::default()
    }
}
