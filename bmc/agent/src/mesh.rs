//! Decodes control's messages.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use proto_mesh::{BmcAction, BmcDesired, BmcOrder};
use tokio::time::Instant;

use crate::driver::Action;
use crate::fleet::CANDIDATES_MAX;
use crate::nonce::Nonce;
use crate::orders::{Binding, Order};

/// Orders taken from one list. The rest comes with a later list.
const ORDERS_MAX: usize = 10_000;
/// Longest plausible remaining time, more than any order of control has. A longer one is cut.
const REMAINING_MAX: Duration = Duration::from_secs(3600);

/// Splits a list into valid orders and invalid ones with the reason.
pub(crate) fn orders(message: &BmcDesired) -> (Vec<Order>, Vec<(String, String)>) {
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for order in message.orders.iter().take(ORDERS_MAX) {
        match read(order) {
            Ok(order) => good.push(order),
            Err(reason) => bad.push((order.id.clone(), reason)),
        }
    }
    (good, bad)
}

fn read(order: &BmcOrder) -> Result<Order, String> {
    let machine = order
        .machine_uuid
        .parse()
        .map_err(|error| format!("{error}"))?;
    let action = match order.action() {
        BmcAction::PowerOn => Action::PowerOn,
        BmcAction::PowerOff => Action::PowerOff,
        BmcAction::PowerReset => Action::PowerReset,
        BmcAction::PowerCycle => Action::PowerCycle,
        BmcAction::BootPxe => Action::BootPxe,
        BmcAction::BootDisk => Action::BootDisk,
        BmcAction::BootBios => Action::BootBios,
        BmcAction::LedOn => Action::LedOn,
        BmcAction::LedOff => Action::LedOff,
        BmcAction::SetNonce => Action::SetNonce(Nonce::generate()),
        BmcAction::Unspecified => {
            return Err(format!("this agent knows no action {}", order.action));
        }
    };
    let remaining = Duration::from_millis(order.remaining_ms).min(REMAINING_MAX);
    Ok(Order {
        id: order.id.clone(),
        machine,
        action,
        bmc: match order.bmc_address.as_str() {
            "" => None,
            address => Some(address.parse().map_err(|error| format!("{error}"))?),
        },
        deadline: Instant::now() + remaining,
        trace: order.traceparent.parse().ok(),
        binding: (order.era > 0).then_some(Binding {
            era: order.era,
            epoch: order.epoch,
        }),
    })
}

/// Candidates by address; malformed ones are left out.
pub(crate) fn candidates(message: &BmcDesired) -> BTreeMap<IpAddr, String> {
    let read = |address: &str| address.parse::<IpAddr>().ok();
    message
        .candidates
        .iter()
        .take(CANDIDATES_MAX)
        .filter_map(|candidate| Some((read(&candidate.address)?, candidate.mac.clone())))
        .collect()
}
