//! The listeners of control that this agent itself is configured with: firewalls may talk to them too.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;
use tracing::warn;

/// Longest time for the resolution of one name. Ports stay in quarantine meanwhile.
const RESOLVE_MAX: Duration = Duration::from_secs(3);
/// Most listeners. Further ones are left out; a cluster has a handful of nodes.
const LISTENERS_MAX: usize = 64;
/// Logged for a name without an address.
const UNRESOLVED: &str = "the name of a control node has no address; firewalls do not reach it until \
                          the agent is restarted, or bgp.firewall_services names it";

/// The listeners behind addresses, `host:port`. A name is resolved once, at the start of the agent;
/// one that has no address then is left out, and logged.
pub async fn control_listeners(addresses: &[String]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for address in addresses {
        match address.parse() {
            Ok(literal) => found.push(literal),
            Err(_) => match timeout(RESOLVE_MAX, lookup_host(address)).await {
                Ok(Ok(resolved)) => found.extend(resolved),
                Ok(Err(error)) => warn!(address, %error, "{UNRESOLVED}"),
                Err(_) => warn!(address, "{UNRESOLVED}"),
            },
        }
    }
    found.truncate(LISTENERS_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_count_as_they_are_and_names_by_their_addresses() {
        let listeners = |list: &'static [&'static str]| async move {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            control_listeners(&list).await
        };
        let socket = |text: &str| text.parse::<SocketAddr>().unwrap();
        let literal = listeners(&["10.1.0.2:4443", "[2001:db8::2]:4443"]).await;
        let wanted = [socket("10.1.0.2:4443"), socket("[2001:db8::2]:4443")];
        assert_eq!(literal, wanted);
        let named = listeners(&["localhost:4443"]).await;
        assert!(
            !named.is_empty() && named.iter().all(|found| found.ip().is_loopback()),
            "{named:?}"
        );
        // Without a port, and nothing at all.
        assert_eq!(listeners(&["10.1.0.2", ""]).await, []);
    }
}
