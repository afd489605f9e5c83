//! Records of the outcome of an order to a BMC.

use crate::machine::apply::events;
use crate::machine::entity::{BmcAction, BmcOrder, Machine, OrderPurpose, OrderState};
use crate::tables::Tx;

/// Writes the power state and LED that the end of an order tells.
pub(crate) fn observe(tx: &mut Tx<'_>, order: &BmcOrder, power_state: Option<&str>) {
    let Some(mut machine) = tx.get::<Machine>(&order.machine).map(|m| Machine::clone(m)) else {
        return;
    };
    // Without a reading after the order the last known state stays; the next report of the agent
    // replaces it.
    if let (Some(bmc), Some(power)) = (&mut machine.bmc, power_state.filter(|p| !p.is_empty())) {
        bmc.power_state = power.to_owned();
    }
    if order.state == OrderState::Done {
        match order.action {
            BmcAction::LedOn => machine.led.value = "on".into(),
            BmcAction::LedOff => machine.led.value = "off".into(),
            _ => {}
        }
    }
    tx.save(machine);
}

/// Records the failure of an order among the machine's events, for the user who gave it or wonders
/// why the machine does not join. Failures of the life cycle are in the machine's reason.
pub(crate) fn record_order_failure(tx: &mut Tx<'_>, order: &BmcOrder) {
    let is_told = order.purpose != OrderPurpose::Life;
    if let (true, Some(error)) = (is_told, &order.error) {
        let message = format!("{} failed: {error}", order.action.as_str());
        events::record_failure(tx, order.machine, &message);
    }
}
