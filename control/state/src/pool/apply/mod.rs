//! Changes of pools, hosts, and labels of projects. Claims follow by themselves.

pub(crate) mod host;
pub(crate) mod pool;
pub(crate) mod project_labels;
