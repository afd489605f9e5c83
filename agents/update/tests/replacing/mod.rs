//! Self-update of the real programs of agents, whose own tests include this by its path: control's part,
//! a publisher of releases, a service manager, and what each program has to do.

mod release_server;
mod story;
mod supervised;
mod updates;

pub(crate) use release_server::{AUTHORITY, ReleaseServer};
pub(crate) use story::{Story, install_keys, section};
pub(crate) use supervised::Supervised;
pub(crate) use updates::Updates;
