use ipnet::IpNet;

/// Access to the firewall itself. Everything that is not named here or needed by the fabric is
/// dropped, whoever it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputPolicy {
    /// Interfaces of the management network and of the VPN. None of them is a private network's.
    pub management_interfaces: Vec<String>,
    /// Sources that may manage the firewall by any interface that is not a private network's.
    pub management_prefixes: Vec<IpNet>,
    /// TCP ports that are open for management.
    pub management_ports: Vec<u16>,
    /// Port of the DNS proxy, UDP and TCP, which is open for private networks. `None` if there is no
    /// proxy.
    pub dns_port: Option<u16>,
}

impl Default for InputPolicy {
    /// SSH by the VPN.
    fn default() -> Self {
        Self {
            management_interfaces: vec!["tailscale0".to_owned()],
            management_prefixes: Vec::new(),
            management_ports: vec![22],
            dns_port: None,
        }
    }
}
