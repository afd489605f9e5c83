//! The states of a node.

use control_state::life::machine_orders;
use control_state::query::node_state;

use crate::access::seen_node;
use crate::answer::IronicAnswer;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{ShownStates, states, target_power_state};

/// `GET /nodes/{node}/states`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let found = call.read(|tables| {
            let ident = call.parameter("node");
            let node = seen_node(tables, call.policy, call.caller, ident)?;
            let target = target_power_state(machine_orders(tables, node.id()));
            Ok((node, target))
        });
        let (node, target_power_state) = found.await?;
        call.require("baremetal:node:get_states", &node.target())?;
        let state = node_state(&node.machine, node.record.as_deref(), call.now());
        let shown = ShownStates {
            state: &state,
            target_power_state,
            is_error_shown: call.permits("baremetal:node:get:last_error", &node.target()),
        };
        Ok(IronicAnswer::ok(states(&node.machine, shown)))
    })
}
