//! The public API: decode, authorise, propose or read, encode.
//!
//! [`front`] speaks the protocols, [`gate`] decides who may call, [`services`] has one file a
//! resource, `steady` streams what an agent of the published stack shall do, `convert` turns the
//! contract's messages into the state's objects and back, `listing` leaves the items of a list to
//! be converted when they are sent, [`audit`] says what the trail keeps,
//! [`doctor`] is what a node tells of where it runs, [`login`] has the pages to log in, [`token`] signs and checks bearer tokens, [`backup`] makes
//! backups, [`vpn`] is what a VPN must do, `watch` tells what
//! changes, [`traces`] makes calls parts of traces, [`serve`] listens, `image_digest` finds the
//! digests of images whose caller gives none, `outbound` is the HTTP client for that and for logins.
//!
//! Invariants:
//! - no handler runs before the gate let the call in, in any protocol;
//! - a handler writes only with the permit that the gate gave for this very call;
//! - what a caller may not see is not found;
//! - errors carry a code of the catalogue and nothing internal (`refusal`).

pub mod audit;
pub mod backup;
mod bmc_streams;
mod bootstrap;
mod caller;
mod convert;
mod core;
mod directory;
pub mod doctor;
mod filing;
mod freshness;
pub mod gate;
mod image_digest;
pub mod login;
mod outbound;
mod policy;
mod published;
mod rate;
mod refusal;
pub mod services;
mod steady;
pub mod token;
mod uses;
pub mod vpn;
mod watch;

pub use bootstrap::{ADMIN_USER, BootstrapError, admin_token, is_fresh, tenants};
pub use core::Core;
pub use image_digest::{FetchLimits, ImageDigests};
pub use policy::{Looked, Policies};
pub use published::{Ears, Published};
pub use rate::{CALLS_PER_MINUTE, Rates};
pub use uses::{UseWriter, Uses};
pub use watch::{WatchLimits, Watches};
