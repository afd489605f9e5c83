//! Questions about claims: which hosts fit one, and which claim a host is for.

mod contest;
mod lookup;
mod needs;
mod score;
mod survey;

pub(crate) use contest::contest;
pub use lookup::*;
pub(crate) use needs::claimant;
pub(crate) use survey::survey;
