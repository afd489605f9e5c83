//! The sources `seed` and `shoot`: objects of Kubernetes, followed by lists and watches.
//!
//! Everything that an API server says is bounded and checked: its operator is not the firewall's.
//! Objects are converted one by one into the shapes that [`crate::admit`] reads; what is wrong in
//! one of them is found there.
//!
//! Invariants:
//! - A kubeconfig runs no program, names no other file, and never leads to a connection without TLS
//!   ([`Kubeconfig`]).
//! - A list replaces the objects only if it was read to its end, and an empty one only if its
//!   namespace exists (`reflector`).

mod client;
mod error;
mod events;
mod firewall;
mod kubeconfig;
mod kubeconfig_error;
mod kubeconfig_fields;
mod lines;
mod monitor;
mod object;
mod policy;
mod reflector;
mod resource;
mod seed;
mod service;
mod shoot;
mod status;
mod store;

pub use client::KubernetesClient;
pub use error::KubernetesError;
pub use events::{ObjectList, WatchEvent};
pub use firewall::firewall_spec;
pub use kubeconfig::Kubeconfig;
pub use kubeconfig_error::KubeconfigError;
pub use lines::WatchLines;
pub use object::{KubernetesObject, ObjectKey};
pub use policy::policy_value;
pub(super) use seed::run_seed;
pub use service::service_value;
pub(super) use shoot::{ShootParts, run_shoot};
