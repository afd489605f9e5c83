//! BMC agents: orders out, readings and ends of orders in.

use std::sync::Arc;
use std::time::Duration;

use base_telemetry::traces::TraceContext;
use control_state::life;
use control_state::{
    BmcAction as Action, BmcOrder as Order, BmcOrderDone as Done, BmcReading, Draw, Fru, Machine,
    PowerMetric, PowerSupply, ReportBmc, Tables, bmc_host,
};
use proto_link::{LinkStatus, Peer, Sink};
use proto_mesh::{
    BmcAction, BmcCandidate, BmcDesired, BmcDesiredRequest, BmcOrder, BmcOrderDone,
    BmcOrderDoneResponse, BmcReport, BmcReportResponse, BmcService, BmcStatus, PowerDraw,
    bmc_service,
};
use proto_types::{Digest, MachineId, Timestamp};

use crate::desired::{self, Desire, Fence};
use crate::parts::GatewayParts;
use crate::wakes::Concern;
use crate::{access, convert, status};

/// Readings in one report.
const READINGS_MAX: usize = 10_000;
/// Readings in one command.
const READINGS_PER_COMMAND: usize = 100;

impl BmcService for GatewayParts {
    async fn desired(
        &self,
        peer: &Peer,
        _request: BmcDesiredRequest,
        out: Sink<'_, BmcDesired>,
    ) -> Result<(), LinkStatus> {
        let partition = access::bmc(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        let desire = Desire {
            look: || {
                desired::at_tables(self, |tables| {
                    let orders = life::bmc_desired(tables, &partition);
                    let orders = orders.into_iter().map(|order| Addressed {
                        address: believed_address(tables, &order),
                        era: life::epoch_era(tables, order.machine),
                        order,
                    });
                    let orders: Vec<Addressed> = orders.collect();
                    let candidates = self.leases.candidates(&partition, self.store.now());
                    Ok(Some((candidates, orders)))
                })
            },
            message: |fence: Fence, content: &(Vec<BmcCandidate>, Vec<Addressed>)| {
                let now = self.store.now();
                let desired = BmcDesired {
                    term: fence.term,
                    generation: fence.generation,
                    candidates: content.0.clone(),
                    orders: content.1.iter().map(|order| message(order, now)).collect(),
                    seal: None,
                };
                self.sealed(peer, desired)
            },
            concern: Concern::Orders(partition.clone()),
            beside: Some(self.leases.changes()),
            pause: Duration::ZERO,
        };
        desired::stream(self, desire, out).await
    }

    async fn report(
        &self,
        peer: &Peer,
        request: BmcReport,
    ) -> Result<BmcReportResponse, LinkStatus> {
        let partition = access::bmc(peer)?;
        let now = self.store.now();
        self.presence.heard_partition(&partition, now);
        if request.bmcs.len() > READINGS_MAX {
            return Err(LinkStatus::resource_exhausted(
                "too many readings in one report",
            ));
        }
        let readings = request
            .bmcs
            .into_iter()
            .map(|status| reading(status, now))
            .collect::<Result<Vec<_>, _>>()?;
        let news: Vec<BmcReading> = self.look(|t| {
            let matters = |r: &BmcReading| life::bmc_reading_matters(t, r, now);
            readings.into_iter().filter(matters).collect()
        })?;
        let mut created = Vec::new();
        for readings in news.chunks(READINGS_PER_COMMAND) {
            let op = ReportBmc {
                partition: partition.clone(),
                readings: readings.to_vec(),
            };
            if let control_state::Reply::MachineIds(ids) = self.propose(peer, op).await? {
                created.extend(ids.iter().map(ToString::to_string));
            }
        }
        Ok(BmcReportResponse { created })
    }

    async fn order_done(
        &self,
        peer: &Peer,
        request: BmcOrderDone,
    ) -> Result<BmcOrderDoneResponse, LinkStatus> {
        let partition = access::bmc(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        let about = format!("order {}", request.id);
        self.audited(&bmc_service::ORDER_DONE, peer, about, |shared| async move {
            let op = Done {
                id: request.id.parse().map_err(status::parse)?,
                partition,
                error: convert::non_empty(request.error),
                power_state: convert::non_empty(request.power_state),
                nonce: digest(&request.nonce_sha256)?,
            };
            shared.propose(peer, op).await?;
            Ok(BmcOrderDoneResponse {})
        })
        .await
    }
}

/// Of an order for a nonce; none of others, and of those that failed.
fn digest(bytes: &[u8]) -> Result<Option<Digest>, LinkStatus> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes = bytes
        .try_into()
        .map_err(|_| LinkStatus::invalid_argument("nonce_sha256 must have 32 bytes, or none"))?;
    Ok(Some(Digest::sha256(bytes)))
}

fn draw(draw: PowerDraw) -> Draw {
    let supply = |supply: proto_mesh::PowerSupply| PowerSupply {
        health: supply.health,
        state: supply.state,
    };
    let metric = draw.metric.map(|metric| PowerMetric {
        average_mw: metric.average_mw,
        interval_milliminutes: metric.interval_ms / 60,
        max_mw: metric.max_mw,
        min_mw: metric.min_mw,
    });
    let supplies = draw.supplies.into_iter().map(supply).collect();
    Draw { metric, supplies }.clipped()
}

/// An order, and what its machine has to do with it.
#[derive(Clone, PartialEq)]
struct Addressed {
    order: Arc<Order>,
    /// Where the machine's BMC is; empty while no agent has read it.
    address: String,
    /// The count that the order's epoch belongs to.
    era: u64,
}

/// Where the machine's BMC is; empty while no agent has read it.
fn believed_address(tables: &Tables, order: &Order) -> String {
    let bmc = tables
        .get::<Machine>(&order.machine)
        .and_then(|machine| machine.bmc.as_ref())
        .filter(|bmc| bmc.was_read());
    let address = bmc.map(|bmc| bmc_host(&bmc.address));
    address.unwrap_or_default().to_owned()
}

/// An order as it is sent now: with the time that is left, as clocks differ.
fn message(addressed: &Addressed, now: Timestamp) -> BmcOrder {
    let order = &addressed.order;
    let action = match order.action {
        Action::PowerOn => BmcAction::PowerOn,
        Action::PowerOff => BmcAction::PowerOff,
        Action::PowerReset => BmcAction::PowerReset,
        Action::PowerCycle => BmcAction::PowerCycle,
        Action::BootPxe => BmcAction::BootPxe,
        Action::BootDisk => BmcAction::BootDisk,
        Action::BootBios => BmcAction::BootBios,
        Action::LedOn => BmcAction::LedOn,
        Action::LedOff => BmcAction::LedOff,
        Action::SetNonce => BmcAction::SetNonce,
    };
    BmcOrder {
        id: order.id.to_string(),
        machine_uuid: order.machine.to_string(),
        action: action.into(),
        remaining_ms: order.deadline.since_ms(now),
        traceparent: traceparent(order).unwrap_or_default(),
        bmc_address: addressed.address.clone(),
        epoch: order.epoch,
        era: addressed.era,
    }
}

/// The order's own span is what the agent's work is a part of.
fn traceparent(order: &Order) -> Option<String> {
    let context: TraceContext = order.trace.as_deref()?.parse().ok()?;
    let span = TraceContext::span_of(&order.id.to_string())?;
    Some(context.with_span(span).to_string())
}

fn reading(status: BmcStatus, now: Timestamp) -> Result<BmcReading, LinkStatus> {
    let fru = status.fru.unwrap_or_default();
    Ok(BmcReading {
        machine: convert::optional::<MachineId>(&status.machine_uuid)
            .map_err(crate::status::parse)?,
        address: status.address,
        mac: status.mac,
        interface: status.interface,
        bmc_version: status.bmc_version,
        bios_version: status.bios_version,
        bios_vendor: status.bios_vendor,
        power_state: status.power_state,
        led_state: status.led_state,
        fru: Fru {
            chassis_part_number: fru.chassis_part_number,
            chassis_part_serial: fru.chassis_part_serial,
            board_mfg: fru.board_mfg,
            board_mfg_serial: fru.board_mfg_serial,
            board_part_number: fru.board_part_number,
            product_manufacturer: fru.product_manufacturer,
            product_part_number: fru.product_part_number,
            product_serial: fru.product_serial,
        },
        user: status.user,
        draw: status.draw.map(draw),
        error: convert::non_empty(status.error),
        observed_at: Timestamp::from_ms(now.ms().saturating_sub(status.age_ms)),
        heard_at: None,
    })
}
