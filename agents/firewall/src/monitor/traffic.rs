use serde::Serialize;

use crate::netlink::CounterValue;

/// Accounting of the private networks, apart for internal and external addresses of the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceStatistics {
    /// The other side is one of the operator's internal prefixes.
    pub internal: TrafficValue,
    /// The other side is another address.
    pub external: TrafficValue,
}

/// Both directions, as a private network sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficValue {
    /// Into private networks.
    #[serde(rename = "in")]
    pub incoming: CounterValue,
    /// Out of private networks.
    #[serde(rename = "out")]
    pub outgoing: CounterValue,
}
