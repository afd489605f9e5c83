//! Commands about users, tokens, tickets, certificates and the authority.

mod ca;
mod ca_rotation;
mod certificate;
mod identity;
mod issue;
mod join_ticket;
mod login;
mod token;
mod token_change;
mod user;

pub use ca::*;
pub use ca_rotation::*;
pub use certificate::*;
pub use identity::*;
pub use issue::*;
pub use join_ticket::*;
pub use login::*;
pub use token::*;
pub use token_change::*;
pub use user::*;
