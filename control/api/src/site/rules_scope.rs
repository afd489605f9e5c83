//! The work of the services of firewall rules, for a project or for an administrator.

use control_convert::firewall::{
    RuleDetail, firewalls, from_content, from_target, revision, rules,
};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::query::rule_history;
use control_state::{
    DeleteFirewallRules, FirewallRuleSet, Op, RollBackFirewallRules, RuleSetKey, RuleTarget,
    SetFirewallRules, StateError, Tables,
};
use proto_firewall::RuleOwner;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::ProjectId;
use tonic::Status;

use crate::services::Services;

/// The set that a call is about, and the project that its caller is bound to.
#[derive(Debug, Clone)]
pub(super) struct RulesScope {
    pub(super) set: RuleSetKey,
    /// `None` means an administrator.
    pub(super) project: Option<ProjectId>,
}

/// The words that are written beside rules.
#[derive(Debug)]
pub(super) struct RulesNote {
    pub(super) comment: String,
    /// Number of the revision that the caller read. `None` means any.
    pub(super) expected: Option<u64>,
}

/// A set, and what its firewalls report.
#[derive(Debug)]
pub(super) struct RulesInForce {
    pub(super) rules: mesh::FirewallRules,
    pub(super) firewalls: Vec<mesh::FirewallRulesOnFirewall>,
}

impl RulesScope {
    /// The set of an owner of a firewall, or of a network.
    pub(super) fn of(
        project: Option<ProjectId>,
        firewall: &str,
        network: &str,
        owner: RuleOwner,
    ) -> Result<Self, Status> {
        let target = from_target(firewall, network)?;
        Ok(Self {
            set: RuleSetKey { target, owner },
            project,
        })
    }

    /// The set on record. That of another project is not there.
    fn find<'a>(&self, tables: &'a Tables) -> Result<&'a FirewallRuleSet, StateError> {
        let row = tables.get::<FirewallRuleSet>(&self.set);
        let row = row.filter(|row| self.project.is_none_or(|project| project == row.project));
        row.map(AsRef::as_ref).ok_or_else(|| {
            let hint = match self.set.target {
                RuleTarget::Firewall(_) => "see: metalmesh firewall rules ls",
                RuleTarget::Network(_) => "see: metalmesh firewall rules ls; metalmesh network ls",
            };
            StateError::not_found("firewall rules", &self.set).hint(hint)
        })
    }

    /// The revisions, the newest first. With the number of one: that one, with its content.
    fn history(
        &self,
        tables: &Tables,
        number: u64,
    ) -> Result<Vec<mesh::FirewallRules>, StateError> {
        let (set, row) = (&self.set, self.find(tables)?);
        let earlier = rule_history(tables, set).map(|history| &history.revision);
        let mut all = std::iter::once(&row.current).chain(earlier);
        if number == 0 {
            let shown = all.map(|one| revision(set, row.project, one, RuleDetail::Summary));
            return Ok(shown.collect());
        }
        let found = all.find(|one| one.number == number).ok_or_else(|| {
            let key = format!("{set}/{number}");
            StateError::not_found("revision of firewall rules", key)
                .hint("see the revisions that are kept: metalmesh firewall rules history")
        })?;
        Ok(vec![revision(set, row.project, found, RuleDetail::Content)])
    }
}

impl Services {
    /// Writes a new revision.
    pub(super) async fn set_rules(
        &self,
        caller: &Caller,
        scope: RulesScope,
        content: Option<mesh::FirewallRuleContent>,
        note: RulesNote,
    ) -> Result<Option<mesh::FirewallRules>, Status> {
        let op = SetFirewallRules {
            set: scope.set,
            project: scope.project,
            content: from_content(content)?,
            comment: note.comment,
            expected: note.expected,
        };
        self.propose_rules(caller, op).await
    }

    /// Writes the content of an earlier revision as a new one.
    pub(super) async fn roll_back_rules(
        &self,
        caller: &Caller,
        scope: RulesScope,
        number: u64,
        note: RulesNote,
    ) -> Result<Option<mesh::FirewallRules>, Status> {
        let op = RollBackFirewallRules {
            set: scope.set,
            project: scope.project,
            number,
            comment: note.comment,
            expected: note.expected,
        };
        self.propose_rules(caller, op).await
    }

    /// Deletes a set.
    pub(super) async fn remove_rules(
        &self,
        caller: &Caller,
        scope: RulesScope,
        expected: Option<u64>,
    ) -> Result<Option<mesh::FirewallRules>, Status> {
        let op = DeleteFirewallRules {
            set: scope.set,
            project: scope.project,
            expected,
        };
        self.propose_rules(caller, op).await
    }

    /// Proposes a write of a set; returns the set.
    async fn propose_rules(
        &self,
        caller: &Caller,
        op: impl Into<Op>,
    ) -> Result<Option<mesh::FirewallRules>, Status> {
        let reply = self.gate.propose(caller, op).await?;
        let row = reply.firewall_rule_set().map_err(of_state)?;
        Ok(Some(rules(&row, RuleDetail::Content)))
    }

    /// A set, and what its firewalls report.
    pub(super) async fn rules_in_force(
        &self,
        caller: &Caller,
        scope: &RulesScope,
    ) -> Result<RulesInForce, Status> {
        let found = self.gate.read(caller, |tables| {
            let row = scope.find(tables)?;
            Ok(RulesInForce {
                rules: rules(row, RuleDetail::Content),
                firewalls: firewalls(tables, row, scope.project),
            })
        });
        found.await
    }

    /// The sets of a project. `None` means all.
    pub(super) async fn list_rules(
        &self,
        caller: &Caller,
        project: Option<ProjectId>,
    ) -> Result<Vec<mesh::FirewallRules>, Status> {
        let found = self.gate.read(caller, |tables| {
            let rows = tables.all::<FirewallRuleSet>();
            let rows = rows.filter(|row| project.is_none_or(|project| project == row.project));
            Ok(rows.map(|row| rules(row, RuleDetail::Summary)).collect())
        });
        found.await
    }

    /// The revisions of a set, the newest first. With the number of one: that one, with its content.
    pub(super) async fn rules_history(
        &self,
        caller: &Caller,
        scope: &RulesScope,
        number: u64,
    ) -> Result<Vec<mesh::FirewallRules>, Status> {
        let found = self
            .gate
            .read(caller, |tables| scope.history(tables, number));
        found.await
    }
}
