//! Asks the firewalls that run about rules: a dry run.

use control_convert::firewall::from_content;
use control_gate::Caller;
use control_gate::refusal::of_store;
use control_presence::{CandidateEffect, CandidateOutcome, RuleCandidate};
use control_state::query::{check_rules, firewall_allocation, firewalls_of_set};
use control_state::{Project, Tables};
use futures::future::join_all;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::{AllocationId, MachineId};
use tonic::Status;
use uuid::Uuid;

use super::rules_scope::RulesScope;
use crate::services::Services;

/// Most firewalls that one call asks. Further ones are named with the reason.
const ASKED_MAX: usize = 8;

/// A firewall that a set is for.
#[derive(Debug)]
struct AskedFirewall {
    machine: MachineId,
    allocation: AllocationId,
    hostname: String,
}

impl Services {
    /// Asks the firewalls that a set is for what a content would change there.
    pub(super) async fn try_rules(
        &self,
        caller: &Caller,
        scope: RulesScope,
        content: Option<mesh::FirewallRuleContent>,
    ) -> Result<Vec<mesh::FirewallRulesEffect>, Status> {
        let content = from_content(content)?;
        let found = self.gate.read(caller, |tables| {
            let project = check_rules(tables, &scope.set, scope.project, &content)?;
            let found = firewalls_of_set(tables, &scope.set, project);
            let asker = scope.project.and_then(|id| tables.get::<Project>(&id));
            let tenant = asker.map(|project| project.tenant.clone());
            Ok((tenant, firewalls_to_ask(tables, found)))
        });
        let (tenant, mut firewalls) = found.await?;
        let rest = firewalls.split_off(firewalls.len().min(ASKED_MAX));
        let asked = firewalls.iter();
        let answers = asked.map(|firewall| {
            let candidate = RuleCandidate {
                id: Uuid::now_v7(),
                asker: scope.project,
                tenant: tenant.clone(),
                machine: firewall.machine,
                allocation: firewall.allocation,
                set: scope.set.clone(),
                content: content.clone(),
            };
            self.compare(firewall, candidate)
        });
        let mut effects = join_all(answers).await;
        let error = format!("it was not asked: one call asks {ASKED_MAX} firewalls");
        let not_asked = |firewall| Ok(effect_with_error(firewall, &error));
        effects.extend(rest.iter().map(not_asked));
        effects.into_iter().collect()
    }

    async fn compare(
        &self,
        firewall: &AskedFirewall,
        candidate: RuleCandidate,
    ) -> Result<mesh::FirewallRulesEffect, Status> {
        let firewalls = self.node.presence.firewalls();
        let outcome = firewalls.compare(candidate).await.map_err(of_store)?;
        Ok(match outcome {
            CandidateOutcome::Compared(effect) => shown(firewall, effect),
            CandidateOutcome::NotConnected => {
                let error = "it has no session with control; on the firewall, metalmesh-firewall \
                             must run with the source metal";
                effect_with_error(firewall, error)
            }
            CandidateOutcome::Busy => effect_with_error(
                firewall,
                "it compares other rules now, or too many firewalls do; try again in a few seconds",
            ),
            CandidateOutcome::TimedOut => {
                effect_with_error(firewall, "it did not answer in ten seconds; try again")
            }
            CandidateOutcome::NotKnown => {
                let error = "an older control node leads, which cannot ask it; update that node";
                effect_with_error(firewall, error)
            }
        })
    }
}

fn firewalls_to_ask(tables: &Tables, ids: Vec<MachineId>) -> Vec<AskedFirewall> {
    let found = ids.into_iter().filter_map(|machine| {
        let allocation = firewall_allocation(tables, machine)?;
        Some(AskedFirewall {
            machine,
            allocation: allocation.id,
            hostname: allocation.hostname.clone(),
        })
    });
    found.collect()
}

fn effect_with_error(firewall: &AskedFirewall, error: &str) -> mesh::FirewallRulesEffect {
    mesh::FirewallRulesEffect {
        firewall: firewall.machine.to_string(),
        hostname: firewall.hostname.clone(),
        error: error.to_owned(),
        ..mesh::FirewallRulesEffect::default()
    }
}

fn shown(firewall: &AskedFirewall, effect: CandidateEffect) -> mesh::FirewallRulesEffect {
    let refused = effect.refused.into_iter();
    mesh::FirewallRulesEffect {
        added: effect.added,
        removed: effect.removed,
        changed: effect.changed,
        rules: effect.rules,
        entries: effect.entries,
        parts: effect.parts,
        refused: refused
            .map(|refused| mesh::FirewallRefusedRule {
                object: refused.object,
                field: refused.field,
                problem: refused.problem,
                remedy: refused.remedy,
            })
            .collect(),
        ..effect_with_error(firewall, &effect.error)
    }
}
