//! Questions about nodes and documents.

mod documents;
mod lookup;
mod withheld;

pub use documents::*;
pub use lookup::*;
pub(crate) use withheld::*;
