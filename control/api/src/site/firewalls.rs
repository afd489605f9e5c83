//! Firewalls: their roles, their health, and how one takes the place of another.

use control_convert::firewall_status::{firewall_statuses, with_heard};
use control_convert::{parse, time};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state, of_store};
use control_state::{ReplaceFirewall, ReplacementStep};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::{MachineId, ProjectId};
use tonic::Status;

use crate::services::Services;

impl Services {
    /// The firewalls of a project. `None` means those of all, for an administrator.
    pub(super) async fn firewalls_of(
        &self,
        caller: &Caller,
        project: Option<ProjectId>,
    ) -> Result<Vec<mesh::FirewallStatus>, Status> {
        let found = self
            .gate
            .read(caller, |tables| Ok(firewall_statuses(tables, project)));
        let mut shown = found.await?;
        self.add_heard(&mut shown).await?;
        Ok(shown)
    }

    /// Adds the times at which the leader heard firewalls.
    pub(super) async fn add_heard(&self, shown: &mut [mesh::FirewallStatus]) -> Result<(), Status> {
        let ids = shown.iter().map(|shown| parse("firewall", &shown.firewall));
        let ids = ids.collect::<Result<Vec<MachineId>, Status>>()?;
        let heard = self
            .node
            .presence
            .machines_heard(&ids)
            .await
            .map_err(of_store)?;
        for (shown, heard) in shown.iter_mut().zip(heard) {
            with_heard(shown, heard);
        }
        Ok(())
    }

    /// Carries out a step of a replacement.
    pub(super) async fn take_replacement_step(
        &self,
        caller: &Caller,
        request: &mesh::FirewallRulesServiceReplaceFirewallRequest,
    ) -> Result<mesh::FirewallRulesServiceReplaceFirewallResponse, Status> {
        let op = ReplaceFirewall {
            machine: parse("firewall", &request.firewall)?,
            project: parse("project", &request.project)?,
            by: parse("by", &request.by)?,
            step: step(request.step())?,
        };
        let reply = self.gate.propose(caller, op).await?;
        let machine = reply.machine().map_err(of_state)?;
        let allocation = machine.allocation.as_ref();
        let replaced = allocation.and_then(|allocation| allocation.replaces.as_ref());
        Ok(replaced.map_or_else(Default::default, |replaced| {
            mesh::FirewallRulesServiceReplaceFirewallResponse {
                firewall: replaced.machine.to_string(),
                took_over_at: replaced.taken_at.and_then(time),
            }
        }))
    }
}

fn step(step: mesh::FirewallReplacementStep) -> Result<ReplacementStep, Status> {
    use mesh::FirewallReplacementStep as Step;
    match step {
        Step::Prepare => Ok(ReplacementStep::Prepare),
        Step::TakeOver => Ok(ReplacementStep::TakeOver),
        Step::Undo => Ok(ReplacementStep::Undo),
        Step::Unspecified => Err(invalid("step", "must be prepare, take-over or undo")),
    }
}
