//! Commands about pools, their hosts, and labels of projects.

mod host;
mod host_end;
mod pool;

pub use host::*;
pub use host_end::*;
pub use pool::*;
