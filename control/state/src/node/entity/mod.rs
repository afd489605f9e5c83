//! Rows about nodes.

mod content;
mod document;
mod port;
mod provision_state;
mod record;
mod stage;

pub use content::*;
pub use document::*;
pub use port::*;
pub use provision_state::*;
pub use record::*;
pub use stage::*;
