//! Counters and transceivers, as SONiC's own collectors keep them.

use std::collections::BTreeMap;

use super::asic::NAMES;
use super::database::Database;
use super::db::Db;
use super::error::SonicError;
use super::rows::{Row, Rows};
use crate::telemetry::{LinkCounters, Optics, PortTelemetry};

/// Rows with numbers of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortRows {
    /// Rows of `COUNTERS_DB`: the names of ports, and `COUNTERS:<id>`.
    pub counters: Rows,
    /// Rows of `STATE_DB`: `TRANSCEIVER_INFO|<port>` and `TRANSCEIVER_DOM_SENSOR|<port>`.
    pub state: Rows,
}

impl PortRows {
    /// Reads the rows of these ports.
    pub(super) async fn read(database: &Database, ports: &[String]) -> Result<Self, SonicError> {
        let names = database.rows(Db::Counters, &[NAMES.to_owned()]).await?;
        let mut out = Self {
            counters: names,
            ..Self::default()
        };
        let ids = ports.iter().filter_map(|port| out.id(port));
        let keys: Vec<String> = ids.map(|id| format!("COUNTERS:{id}")).collect();
        out.counters
            .extend(database.rows(Db::Counters, &keys).await?);
        let tables = ["TRANSCEIVER_INFO", "TRANSCEIVER_DOM_SENSOR"];
        let keys = ports
            .iter()
            .flat_map(|port| tables.map(|table| format!("{table}|{port}")));
        let keys: Vec<String> = keys.collect();
        out.state = database.rows(Db::State, &keys).await?;
        Ok(out)
    }

    fn id(&self, port: &str) -> Option<&str> {
        self.counters.get(NAMES)?.get(port).map(String::as_str)
    }

    /// The numbers of a port.
    #[must_use]
    pub fn port(&self, port: &str) -> PortTelemetry {
        let counters = self.id(port).map(|id| format!("COUNTERS:{id}"));
        let counters = counters.and_then(|key| self.counters.get(&key));
        let info = self.state.get(&format!("TRANSCEIVER_INFO|{port}"));
        let sensor = self.state.get(&format!("TRANSCEIVER_DOM_SENSOR|{port}"));
        PortTelemetry {
            counters: counters.map(of_counters),
            optics: info.map(|info| optics(info, sensor.unwrap_or(&BTreeMap::new()))),
        }
    }
}

fn of_counters(row: &Row) -> LinkCounters {
    let one = |name: &str| {
        let value = row.get(&format!("SAI_PORT_STAT_IF_{name}"));
        value
            .and_then(|value| value.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let packets = |side: &str| {
        let unicast = one(&format!("{side}_UCAST_PKTS"));
        unicast.saturating_add(one(&format!("{side}_NON_UCAST_PKTS")))
    };
    LinkCounters {
        rx_bytes: one("IN_OCTETS"),
        tx_bytes: one("OUT_OCTETS"),
        rx_packets: packets("IN"),
        tx_packets: packets("OUT"),
        rx_errors: one("IN_ERRORS"),
        tx_errors: one("OUT_ERRORS"),
        rx_drops: one("IN_DISCARDS"),
        tx_drops: one("OUT_DISCARDS"),
    }
}

/// The transceiver of a port; of several lanes the first.
fn optics(info: &Row, sensor: &Row) -> Optics {
    let text = |name| info.get(name).map_or("", String::as_str).trim().to_owned();
    let number = |name, scale| sensor.get(name).map_or(0, |value| scaled(value, scale));
    Optics {
        vendor: text("manufacturer"),
        part: text("model"),
        serial: text("serial"),
        rx_power: number("rx1power", 100.0),
        tx_power: number("tx1power", 100.0),
        temperature: number("temperature", 1.0),
    }
}

/// A decimal number times `scale`, rounded. What is not one ("N/A", "-inf") is 0.
fn scaled(text: &str, scale: f64) -> i32 {
    let value = text.trim().parse::<f64>().unwrap_or(0.0) * scale;
    format!("{value:.0}").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_decimals() {
        for (text, scale, wanted) in [
            ("-2.35", 100.0, -235),
            ("31.6", 1.0, 32),
            ("N/A", 1.0, 0),
            ("-inf", 100.0, 0),
            ("nan", 1.0, 0),
            ("1e300", 100.0, 0),
            (" 0.5 ", 100.0, 50),
        ] {
            assert_eq!(scaled(text, scale), wanted, "{text}");
        }
    }
}
