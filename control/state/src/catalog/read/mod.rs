//! Questions about what administrators offer.

mod fabric_label;
mod image_constraint;
mod layout;
mod layout_rules;
mod overlap;
mod shell_pattern;
mod version;

pub use fabric_label::*;
pub use image_constraint::*;
pub use layout::*;
pub use layout_rules::*;
pub(crate) use overlap::*;
pub(crate) use shell_pattern::*;
pub use version::*;
