use std::net::{IpAddr, SocketAddr};

/// The DNS proxy, as the operator wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameResolver {
    /// Servers that answer, in the order in which they are asked. Never empty.
    pub servers: Vec<SocketAddr>,
    /// Addresses that the proxy listens on. Empty means those of the interfaces of private networks.
    pub listen: Vec<IpAddr>,
    /// Port that the proxy listens on, UDP and TCP.
    pub port: u16,
}
