//! Records of pools, their hosts, and the labels that administrators give to projects.

mod compiled;
mod hold;
mod host;
mod host_parts;
mod key_filter;
mod metadata;
mod patterns;
mod policy;
mod pool;
mod project_labels;
mod shape;
mod taint;

pub(crate) use compiled::{Claimant, CompiledPolicies};
pub use hold::*;
pub use host::*;
pub use host_parts::*;
pub(crate) use key_filter::MetadataFilter;
pub use metadata::*;
pub use patterns::PATTERN_BYTES_MAX;
pub use policy::*;
pub use pool::*;
pub use project_labels::*;
pub(crate) use shape::HostShape;
pub use taint::*;
