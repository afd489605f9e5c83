//! Power, in Ironic's words.

use std::sync::Arc;

use control_state::{BmcAction, BmcOrder, Machine, OrderPurpose, OrderState};
use serde_json::Value;

/// The power is on.
const ON: &str = "power on";
/// The power is off.
const OFF: &str = "power off";

/// The power as the BMC last reported it; `null` if it is unknown.
pub(crate) fn power_state(machine: &Machine) -> Value {
    let bmc = machine.bmc.as_ref();
    let state = bmc.map_or("", |bmc| bmc.power_state.as_str());
    if state.eq_ignore_ascii_case("on") {
        ON.into()
    } else if state.eq_ignore_ascii_case("off") {
        OFF.into()
    } else {
        Value::Null
    }
}

/// The power that the newest open order leads to; `null` if no order changes the power. `orders` are
/// those of the machine, the oldest first.
pub(crate) fn target_power_state<'a>(orders: impl Iterator<Item = &'a Arc<BmcOrder>>) -> Value {
    let open = orders.filter(|order| {
        let is_join = order.purpose == OrderPurpose::Join;
        order.state == OrderState::Open && !is_join
    });
    let newest = open.filter_map(|order| aim(order.action)).last();
    newest.map_or(Value::Null, Value::from)
}

/// The power after an action. `None` means that the action leaves it.
const fn aim(action: BmcAction) -> Option<&'static str> {
    match action {
        // As in Ironic, a reboot ends with the power on.
        BmcAction::PowerOn | BmcAction::PowerReset | BmcAction::PowerCycle => Some(ON),
        BmcAction::PowerOff => Some(OFF),
        BmcAction::BootPxe
        | BmcAction::BootDisk
        | BmcAction::BootBios
        | BmcAction::LedOn
        | BmcAction::LedOff
        | BmcAction::SetNonce => None,
    }
}

#[cfg(test)]
mod tests {
    use proto_types::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn order(action: BmcAction, state: OrderState, purpose: OrderPurpose) -> Arc<BmcOrder> {
        Arc::new(BmcOrder {
            id: Uuid::nil().into(),
            machine: Uuid::nil().into(),
            partition: "lab".parse().unwrap(),
            action,
            purpose,
            sequence: 1,
            state,
            created_at: Timestamp::ZERO,
            deadline: Timestamp::ZERO,
            finished_at: None,
            error: None,
            trace: None,
            taken_by: None,
            nonce: None,
            epoch: 0,
        })
    }

    #[test]
    fn the_newest_open_order_is_the_aim() {
        use BmcAction::{BootPxe, PowerCycle, PowerOff, PowerOn};
        use OrderState::{Done, Open};
        let open = |action| order(action, Open, OrderPurpose::Life);
        for (orders, expected) in [
            (vec![], Value::Null),
            (vec![open(PowerOff)], OFF.into()),
            (vec![open(PowerOff), open(PowerCycle)], ON.into()),
            (vec![open(PowerOff), open(BootPxe)], OFF.into()),
            (
                vec![open(PowerOff), order(PowerOn, Done, OrderPurpose::Life)],
                OFF.into(),
            ),
            (vec![order(PowerOff, Open, OrderPurpose::Join)], Value::Null),
        ] {
            assert_eq!(target_power_state(orders.iter()), expected, "{orders:?}");
        }
    }
}
