//! Decides about every call of the public API: who calls, whether it may, whether the request is
//! valid, whose trail its record belongs to.
//!
//! [`ApiGate`] stands between the front and every handler. It leaves the [`Caller`] in the request,
//! with the permit that a write needs; handlers read and propose through [`ServiceContext`].
//! [`Rights`] decide again, for streams and for calls that take long. [`refusal`] makes statuses of
//! errors, [`token`] signs and checks bearer tokens, [`passwords`] those of built-in users, and
//! [`bootstrap`] makes a fresh cluster's first tenant and token.
//!
//! Invariants:
//! - no handler runs before the gate let the call in, in any protocol;
//! - a handler writes only with the permit that the gate gave for this very call;
//! - an audited call has its record, however it ends;
//! - errors carry a code of the catalogue and nothing internal.

mod admitted_call;
mod api_gate;
mod arrival;
pub mod audit;
pub mod bootstrap;
mod caller;
mod context;
mod directory;
mod filing;
mod freshness;
mod grants;
pub mod passwords;
mod policy;
pub mod principal;
mod rate;
pub mod refusal;
mod rights;
pub mod roles;
pub mod token;
mod uses;

pub use admitted_call::AdmittedCall;
pub use api_gate::ApiGate;
pub use caller::{Caller, PARTITION_LABEL};
pub use context::ServiceContext;
pub use directory::StateDirectory;
pub use freshness::Freshness;
pub use grants::{WantedToken, merged};
pub use policy::{Looked, Policies};
pub use rate::{CALLS_PER_MINUTE, Rates};
pub use rights::{Rights, bears_rights};
pub use uses::{UseWriter, Uses};
