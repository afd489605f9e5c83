use ipnet::IpNet;

/// The list that a rule is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleList {
    /// `firewall.rules`.
    Operator,
    /// `cwnp.egress`.
    Egress,
    /// `cwnp.ingress`.
    Ingress,
    /// `service`.
    Service,
}

/// Protocol and ports that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolPorts {
    /// Every packet.
    Any,
    /// Every packet of an IP protocol.
    Protocol(u8),
    /// Destination ports, or types of ICMP, from the first to the last.
    Ports {
        /// Number of the IP protocol.
        protocol: u8,
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
}

/// A rule that passed the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRule {
    /// List of the rule.
    pub list: RuleList,
    /// Name, with the namespace of a service: `web`, `default/shop`.
    pub name: String,
    /// `accept`, `drop` or `log`.
    pub action: String,
    /// `true` if it is for flows to private networks.
    pub is_ingress: bool,
    /// `true` if it is for flows from private networks. With `is_ingress` it is for every flow.
    pub is_egress: bool,
    /// Source prefixes, disjoint.
    pub sources: Vec<IpNet>,
    /// Destination prefixes, disjoint. `None` means names of the DNS, which only the firewall
    /// resolves.
    pub destinations: Option<Vec<IpNet>>,
    /// Protocols and ports.
    pub protocols: Vec<ProtocolPorts>,
}

impl CheckedRule {
    /// Controller, list and name, as output names the rule: `cwnp egress/web`.
    #[must_use]
    pub fn object(&self) -> String {
        match self.list {
            RuleList::Operator => format!("firewall rules/{}", self.name),
            RuleList::Egress => format!("cwnp egress/{}", self.name),
            RuleList::Ingress => format!("cwnp ingress/{}", self.name),
            RuleList::Service => format!("service {}", self.name),
        }
    }
}
