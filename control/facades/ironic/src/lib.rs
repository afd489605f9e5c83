//! Ironic's REST API, microversion 1.115, over metalmesh's machines.
//!
//! A machine is a node of the same id. [`IronicFacade`] answers each request: it finds the route
//! (`routes`), negotiates the microversion (`version`), authenticates the caller (`access`), and runs
//! the handler of the resource (`nodes`, `life`, `site`, ...). Handlers read and write through
//! [`IronicCall`](request::IronicCall), which asks the policy; `view` makes JSON of the state's rows
//! and does nothing else. `keystone` and `neutron` have the calls that Ironic's clients make of them.
//!
//! Invariants:
//! - a handler gets a node only if the policy lets the caller see it; any other is not found;
//! - a write names the rule that permitted it, and the state checks the project's relation besides;
//! - fields that the policy hides from a caller are masked in every answer that has them;
//! - secrets of `driver_info` are not stored, and are in no answer;
//! - every list has a bound, and every answer the headers of the microversion.
//!
//! Entry point: [`IronicFacade`].

mod access;
mod allocations;
mod answer;
mod error;
mod keystone;
mod life;
mod listing;
mod methods;
mod neutron;
mod nodes;
mod patch;
mod ports;
mod request;
mod response;
mod route;
mod routes;
mod secrets;
mod server;
mod settings;
mod site;
mod version;
mod versions;
mod view;

pub use server::IronicFacade;
pub use settings::IronicSettings;
