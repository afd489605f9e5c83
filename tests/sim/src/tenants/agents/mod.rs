//! The agents of a site: on each machine, at its BMC, on each leaf; and what the leader does by itself.

pub(crate) mod bmc;
pub(crate) mod hammer;
pub(crate) mod leader;
pub(crate) mod leaf;
pub(crate) mod machine;
