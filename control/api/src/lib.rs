//! The public services: decode, authorise, propose or read, encode.

pub mod front;
pub mod token;
