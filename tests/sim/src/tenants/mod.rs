//! A site with a hundred tenants on a simulated cluster: tenants claim, use, overrun their leases and
//! release, while agents and people lose messages, machines go away, and the control nodes suffer every
//! fault of the simulation.
//!
//! Real are the state machine of the product, the store, Raft. Simulated are the machines, with the
//! truth about their disks (`chassis`), their agents (`agents`), tenants, owners and the administrator
//! (`people`). The rules that must hold after every command are in `ledger`, one invariant a file.

mod agents;
mod calls;
mod chassis;
mod course;
mod ids;
mod ledger;
mod people;
mod set_up;
mod site;
mod watched;
mod work;

pub use course::{TenantReport, run, run_many};
pub use ledger::Figures;
