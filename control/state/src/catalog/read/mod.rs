//! Questions about what administrators offer.

mod glob;
mod image_constraint;
mod layout;
mod layout_rules;
mod overlap;
mod version;

pub(crate) use glob::*;
pub use image_constraint::*;
pub use layout::*;
pub use layout_rules::*;
pub(crate) use overlap::*;
pub use version::*;
