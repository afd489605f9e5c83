//! Authenticates, authorises, validates and audits every call of the public API.
//!
//! [`ApiGate`] runs between the front and every handler. It puts the [`Caller`] into the request,
//! with the permit that a write needs; handlers read and propose through [`ServiceContext`].
//! [`ServiceContext::bearer`] and [`FacadeCall`] do the same for facades, whose own policy decides.
//! [`Rights`] authorises streams and long calls again. [`refusal`] maps errors to statuses,
//! [`token`] signs and verifies bearer tokens, [`passwords`] hashes passwords of built-in users,
//! and [`bootstrap`] creates the first tenants and token of a fresh cluster.
//!
//! Invariants:
//! - no handler runs before the gate admitted the call, in any protocol;
//! - a handler writes only with the permit that the gate issued for this call;
//! - an audited call has its record, however it ends;
//! - errors carry a code of the catalogue and nothing internal.

mod admitted_call;
mod api_gate;
mod arrival;
pub mod audit;
mod bearer;
pub mod bootstrap;
mod caller;
mod context;
mod directory;
mod dry_run;
mod facade_call;
mod filing;
mod freshness;
mod grants;
mod looked;
pub mod passwords;
mod policy;
mod policy_context;
pub mod principal;
mod rate;
pub mod refusal;
mod rights;
pub mod roles;
mod stored_token;
pub mod token;
mod uses;
mod wall_clock;
mod wire_path;
mod wire_violations;

pub use admitted_call::AdmittedCall;
pub use api_gate::ApiGate;
pub use bearer::Bearer;
pub use caller::{Caller, PARTITION_LABEL};
pub use context::ServiceContext;
pub use directory::StateDirectory;
pub use facade_call::{FacadeCall, FacadeRequest};
pub use freshness::Freshness;
pub use grants::{WantedToken, merged};
pub use looked::Looked;
pub use policy::Policies;
pub use rate::{CALLS_PER_MINUTE, Rates};
pub use rights::{Rights, bears_rights};
pub use uses::{UseWriter, Uses};
