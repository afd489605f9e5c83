//! Every command of the state once, in an order in which each is accepted.
//!
//! The bench measures with it what a command costs, and `control-store` makes golden files with it.

mod catalog;
mod claims;
mod control;
mod fleet;
mod leases;
mod life;
mod nodes;
mod scenario;
mod tenancy;

use anyhow::Result;

use scenario::Scenario;
pub use scenario::{Sink, Step};

/// Runs the scenario over a data centre of so many machines and returns every change of its state.
///
/// # Errors
/// When a command is refused, or the sink fails.
pub fn run(machines: u32, sink: Sink<'_>) -> Result<Vec<Step>> {
    let mut scenario = Scenario::new(sink);
    tenancy::rows(&mut scenario)?;
    catalog::rows(&mut scenario)?;
    control::rows(&mut scenario)?;
    fleet::fill(&mut scenario, machines)?;
    fleet::rows(&mut scenario)?;
    leases::rows(&mut scenario)?;
    nodes::rows(&mut scenario)?;
    life::rows(&mut scenario, machines)?;
    tenancy::ends(&mut scenario)?;
    control::ends(&mut scenario)?;
    Ok(scenario.into_history())
}
