//! Numbers of a port.

/// Numbers of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortTelemetry {
    /// Counters. `None` means that the platform counts nothing.
    pub counters: Option<LinkCounters>,
    /// The transceiver. `None` means that the platform reports none.
    pub optics: Option<Optics>,
}

/// Counters of a port since it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "rx is received, tx is sent")]
pub struct LinkCounters {
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_drops: u64,
    pub tx_drops: u64,
}

/// The transceiver of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Optics {
    /// Vendor.
    pub vendor: String,
    /// Part number.
    pub part: String,
    /// Serial number.
    pub serial: String,
    /// Received power, 0.01 dBm.
    pub rx_power: i32,
    /// Sent power, 0.01 dBm.
    pub tx_power: i32,
    /// Degrees Celsius.
    pub temperature: i32,
}
