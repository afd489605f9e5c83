//! Commands about users, tokens, tickets, certificates and the authority.

mod ca;
mod certificate;
mod identity;
mod join_ticket;
mod token;
mod user;

pub use ca::*;
pub use certificate::*;
pub use identity::*;
pub use join_ticket::*;
pub use token::*;
pub use user::*;
