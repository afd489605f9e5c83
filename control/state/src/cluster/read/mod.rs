//! Questions about the cluster itself.

mod components;
mod restore;
mod site_settings;

pub use components::*;
pub use restore::*;
pub use site_settings::*;
