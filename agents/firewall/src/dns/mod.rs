//! Names in rules: a DNS proxy that learns the addresses of names.
//!
//! Clients in private networks use the firewall as their DNS server. The proxy asks the operator's
//! servers ([`proxy`](NameSupervisor)), reads the addresses in their answers, and puts them into the
//! kernel's sets of the names, with timeouts, before it passes the answer on. Records themselves are
//! passed on as they came.
//!
//! Invariants:
//! - An address is learned only from an answer to the proxy's own question, for the name that was
//!   asked for, and only if a policy may reach it ([`AddressGuard`]).
//! - The learned addresses are bounded ([`NameLimits`]), and so is the work of each client.
//! - A rule that changes, and an agent that restarts, lose no address ([`NameService`]).

mod answer;
mod budget;
mod connection_budget;
mod eviction;
mod failure_code;
mod guard;
mod held_address;
mod learned;
#[cfg(test)]
mod learned_tests;
mod limits;
mod listen;
mod proxy;
mod query;
mod query_budget;
mod saved;
mod service;
mod supervisor;
mod upstream;
mod wire;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use answer::{ResolvedAddress, resolved_addresses};
pub use failure_code::FailureCode;
pub use guard::AddressGuard;
pub use limits::NameLimits;
pub use query::{AnswerFit, DnsQuery};
pub use saved::SavedName;
pub use service::NameService;
pub use supervisor::NameSupervisor;

/// The address of a key in a set of a name. `None` if it is none.
#[must_use]
pub fn address_of(key: &[u8]) -> Option<IpAddr> {
    match key.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(key).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(key).ok()?).into()),
        _ => None,
    }
}

/// The key of an address in a set of a name.
fn key_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
