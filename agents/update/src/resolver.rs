use std::io;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use super::address_rule::AddressRule;

/// Resolves the names of servers, and leaves out addresses that no release is fetched from: the
/// connection is made to an address that was checked, and to no other one.
#[derive(Clone, Debug)]
pub(super) struct GuardedResolver(pub(super) AddressRule);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.0.clone();
        Box::pin(async move {
            // The port of the URL replaces 0.
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| rule.allows(address.ip()))
                .collect();
            if allowed.is_empty() {
                return Err(io::Error::other(
                    "its name has local addresses only; use a public one, or add their prefix to \
                     the local prefixes of self-update",
                )
                .into());
            }
            let addresses: Addrs = Box::new(allowed.into_iter());
            Ok(addresses)
        })
    }
}
