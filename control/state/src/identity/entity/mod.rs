//! Users, tokens, tickets, certificates and the authority.

mod boot_ticket;
mod ca;
mod certificate;
mod identity;
mod join_ticket;
mod signing_key;
mod token;
mod token_rights;
mod user;

pub use boot_ticket::*;
pub use ca::*;
pub use certificate::*;
pub use identity::*;
pub use join_ticket::*;
pub use signing_key::*;
pub use token::*;
pub use token_rights::*;
pub use user::*;
