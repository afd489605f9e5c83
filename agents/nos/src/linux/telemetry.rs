//! Sessions and counters: from FRR, and from the kernel's description of the devices.

use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, Stats64};

use super::Linux;
use super::link::Link;
use crate::back_end::NosError;
use crate::model::PortName;
use crate::telemetry::{LinkCounters, PortTelemetry, Telemetry};

impl Linux {
    /// Reads sessions and counters. The kernel tells nothing of transceivers by netlink.
    pub(super) async fn read_telemetry(&self) -> Result<Telemetry, NosError> {
        let mut telemetry = Telemetry::default();
        for message in super::links(&self.counters).await? {
            let Some(link) = Link::read(&message).filter(|l| self.config.is_port(&l.name)) else {
                continue;
            };
            if let Ok(name) = PortName::new(&link.name) {
                let counters = counters(&message);
                let optics = None;
                telemetry
                    .ports
                    .insert(name, PortTelemetry { counters, optics });
            }
        }
        if let Some(router) = &self.router {
            router.read_sessions(&mut telemetry).await?;
        }
        Ok(telemetry)
    }
}

fn counters(message: &LinkMessage) -> Option<LinkCounters> {
    let stats = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats),
            _ => None,
        });
    stats.map(of_stats)
}

fn of_stats(stats: &Stats64) -> LinkCounters {
    LinkCounters {
        rx_bytes: stats.rx_bytes,
        tx_bytes: stats.tx_bytes,
        rx_packets: stats.rx_packets,
        tx_packets: stats.tx_packets,
        rx_errors: stats.rx_errors,
        tx_errors: stats.tx_errors,
        rx_drops: stats.rx_dropped,
        tx_drops: stats.tx_dropped,
    }
}
