//! Changes of the provision state.
//!
//! The verb is checked against Ironic's machine, the node and the microversion; then a pure function
//! plans it, and its orders and fields are written. Deployments and their ends are commands of their
//! own.

mod checks;
mod deploy;
mod plan;
mod request;
mod runbook;
mod steps;
mod undeploy;
mod verb_plan;

use control_state::WipeNode;
use control_state::query::{ProvisionEvent, node_state};

use self::checks::{check_supported, check_verb};
use self::deploy::deploy;
use self::plan::plan;
use self::request::ProvisionRequest;
use self::runbook::runbook_steps;
use self::steps::{StepKind, StepPlan};
use self::undeploy::undeploy;
use self::verb_plan::VerbPlan;
use super::orders::{accepted, order, write_content};
use super::rights::check_life;
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::request::IronicCall;
use crate::route::HandlerFuture;

/// The rule for every verb.
const SET: &str = "baremetal:node:set_provision_state";

/// `PUT /nodes/{node}/states/provision`.
pub(super) fn set<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(SET).await?;
        let request = ProvisionRequest::parse(call.body)?;
        let verb = request.verb(call.version)?;
        check_step_rules(call, &node, &request)?;
        let state = node_state(&node.machine, node.record.as_deref(), call.now()).state;
        check_verb(&node, state, verb, request.target)?;
        request.check_fields(verb, call.version)?;
        check_supported(&node, state, verb)?;
        check_life(&node.machine, call.caller.project())?;
        match verb {
            ProvisionEvent::Deploy => deploy(call, &node, &request).await?,
            ProvisionEvent::Delete => undeploy(call, &node, state).await?,
            _ => {
                let steps = wanted_steps(call, &node, &request, verb).await?;
                let plan = plan(verb, &node, state, steps)?;
                carry_out(call, &node, &plan).await?;
            }
        }
        Ok(accepted(call))
    })
}

/// Asks the rules for steps of the caller's own.
fn check_step_rules(
    call: &IronicCall<'_>,
    node: &SeenNode,
    request: &ProvisionRequest<'_>,
) -> Result<(), IronicError> {
    if request.runbook.is_some() {
        return Ok(());
    }
    for (steps, kind) in [
        (request.clean_steps, "clean_steps"),
        (request.service_steps, "service_steps"),
    ] {
        if !steps.is_empty() {
            call.require(&format!("{SET}:{kind}"), &node.target())?;
        }
    }
    Ok(())
}

/// The steps of a request, its own or those of a runbook, as metalmesh does them. Empty for verbs
/// without steps.
async fn wanted_steps(
    call: &IronicCall<'_>,
    node: &SeenNode,
    request: &ProvisionRequest<'_>,
    verb: ProvisionEvent,
) -> Result<StepPlan, IronicError> {
    let kind = match verb {
        ProvisionEvent::Clean => StepKind::Clean,
        ProvisionEvent::Service => StepKind::Service,
        _ => return Ok(StepPlan::default()),
    };
    let own = request.own_steps(verb);
    let Some(runbook) = request.runbook else {
        return StepPlan::of(kind, own, request.disable_ramdisk.unwrap_or(false));
    };
    if !own.is_empty() {
        let text = format!(
            "Please provide either \"{}_steps\" or a runbook, but not both.",
            kind.as_str()
        );
        return Err(IronicError::invalid(text));
    }
    let found = runbook_steps(call, node, runbook).await?;
    StepPlan::of(kind, &found.steps, found.disable_ramdisk)
}

/// Carries a plan out. The orders come first: a node whose BMC takes none stays in its state.
async fn carry_out(
    call: &IronicCall<'_>,
    node: &SeenNode,
    plan: &VerbPlan,
) -> Result<(), IronicError> {
    if plan.wipes {
        let op = WipeNode { machine: node.id() };
        call.propose(op).await?;
    }
    for action in &plan.orders {
        order(call, node, *action).await?;
    }
    let before = node.content();
    let mut content = before.clone();
    content.stage = plan.node_stage(&node.machine, call.now());
    match content == before {
        true => Ok(()),
        false => write_content(call, node, content).await,
    }
}
