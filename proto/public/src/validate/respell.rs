//! Rewrites the ids of a message to their canonical form, along the plans of its rules.
//!
//! The rules of the contract (`string.uuid` and the like) tell which fields are ids. Our own messages
//! have no rules; their ids are listed in [`UNRULED`].

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, Value};

use super::Violation;
use super::plan::{FieldPlan, Plans};
use super::rule::Rule;
use crate::spelling::Spelling;

/// Ids without a rule, by the full name of the field.
const UNRULED: &[(&str, Spelling)] = &[
    (
        "metalmesh.admin.v1.BmcClaimServiceConfirmRequest.machine",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FabricAllocation.machine",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FabricServiceGetPlanRequest.release",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FabricServiceGetTraceRequest.address",
        Spelling::Ip,
    ),
    (
        "metalmesh.admin.v1.FabricServiceGetTraceRequest.machine",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetExplanationRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetExplanationRequest.from",
        Spelling::Ip,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetExplanationRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetExplanationRequest.to",
        Spelling::Ip,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceListHistoryRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceListHistoryRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceListRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceRemoveRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceRemoveRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceRollBackRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceRollBackRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetStatisticsRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceGetStatisticsRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceTryRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceTryRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceListFirewallsRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceReplaceFirewallRequest.by",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceReplaceFirewallRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceReplaceFirewallRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceSetRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.FirewallRulesServiceSetRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceGetExplanationRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceGetExplanationRequest.from",
        Spelling::Ip,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceGetExplanationRequest.to",
        Spelling::Ip,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceGetRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceListHistoryRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceRemoveRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceRollBackRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceGetStatisticsRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceTryRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.OperatorRulesServiceSetRequest.firewall",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.JoinServiceRevokeRequest.id",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.IdentityServiceListRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.ProjectComponentServiceCreateRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.ProjectComponentServiceListRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.ProjectComponentServiceRevokeRequest.id",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.ProjectComponentServiceRevokeRequest.project",
        Spelling::Uuid,
    ),
    ("metalmesh.admin.v1.Quota.project", Spelling::Uuid),
    (
        "metalmesh.admin.v1.QuotaServiceProjectRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.QuotaServiceRemoveRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.WatchServiceAllRequest.id",
        Spelling::Any,
    ),
    (
        "metalmesh.admin.v1.WatchServiceOwnRequest.id",
        Spelling::Any,
    ),
    (
        "metalmesh.admin.v1.WatchServiceProjectRequest.id",
        Spelling::Any,
    ),
    (
        "metalmesh.admin.v1.WatchServiceProjectRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalmesh.admin.v1.WatchServiceTenantRequest.id",
        Spelling::Any,
    ),
    (
        "metalstack.admin.v2.TaskServiceDeleteRequest.task_id",
        Spelling::Uuid,
    ),
    (
        "metalstack.admin.v2.TaskServiceGetRequest.task_id",
        Spelling::Uuid,
    ),
    (
        "metalstack.admin.v2.VPNServiceListNodesRequest.project",
        Spelling::Uuid,
    ),
    (
        "metalstack.api.v2.MachineConnection.machine_id",
        Spelling::Uuid,
    ),
    ("metalstack.api.v2.MachineNic.mac", Spelling::Mac),
    ("metalstack.api.v2.SwitchNic.mac", Spelling::Mac),
    (
        "metalstack.infra.v2.BMCCommandDoneRequest.command_id",
        Spelling::Uuid,
    ),
    (
        "metalstack.infra.v2.EventServiceSendRequest.events",
        Spelling::Uuid,
    ),
];

/// Messages in which host bits of prefixes are ignored.
const FIREWALL: [&str; 2] = [
    "metalstack.api.v2.FirewallEgressRule.",
    "metalstack.api.v2.FirewallIngressRule.",
];

/// The kind of the ids in a field, or of its keys if it is a map.
pub(super) fn spelling(field: &FieldDescriptor, plan: &FieldPlan) -> Option<Spelling> {
    let name = field.full_name();
    let unruled = UNRULED.iter().find(|(known, _)| *known == name);
    let rules = [&plan.rules, &plan.items, &plan.keys];
    let ruled = || rules.into_iter().flatten().find_map(of_rule);
    let found = unruled.map(|(_, spelling)| *spelling).or_else(ruled)?;
    let is_network = FIREWALL.iter().any(|message| name.starts_with(message));
    Some(match found {
        Spelling::Prefix if is_network => Spelling::Network,
        found => found,
    })
}

fn of_rule(rule: &Rule) -> Option<Spelling> {
    let (Rule::Text(format) | Rule::EachText(format) | Rule::EachKey(format)) = rule else {
        return None;
    };
    match format.id {
        "string.uuid"
        | "string.is_project_subject_permission"
        | "string.is_machine_subject_permission"
        | "project_roles.key.valid"
        | "machine_roles.key.valid" => Some(Spelling::Uuid),
        "string.macaddress" => Some(Spelling::Mac),
        "string.ip" | "repeated.ips" | "valid_address" => Some(Spelling::Ip),
        "string.ip_prefix" | "string.prefixes" | "repeated.prefixes" => Some(Spelling::Prefix),
        _ => None,
    }
}

impl Plans {
    /// Rewrites a message by its full name. `true` if anything was changed.
    ///
    /// # Errors
    /// Two keys of a map are the same id.
    pub(super) fn respell(
        &self,
        name: &str,
        message: &mut DynamicMessage,
    ) -> Result<bool, Violation> {
        match self.index(name) {
            Some(index) => self.respell_at(index, message),
            None => Ok(false),
        }
    }

    fn respell_at(&self, index: usize, message: &mut DynamicMessage) -> Result<bool, Violation> {
        let mut is_changed = false;
        for plan in &self.get(index).fields {
            let has_work = plan.spelling.is_some() || plan.nested.is_some();
            if has_work && message.has_field(&plan.field) {
                let value = message.get_field_mut(&plan.field);
                is_changed |= self.respell_field(plan, value)?;
            }
        }
        Ok(is_changed)
    }

    fn respell_field(&self, plan: &FieldPlan, value: &mut Value) -> Result<bool, Violation> {
        let mut is_changed = false;
        match value {
            Value::List(items) => {
                for item in items {
                    is_changed |= self.respell_value(plan, item)?;
                }
            }
            Value::Map(entries) => {
                if let Some(spelling) = plan.spelling {
                    is_changed |= respell_keys(&plan.field, spelling, entries)?;
                }
                if plan.nested.is_some() {
                    for item in entries.values_mut() {
                        is_changed |= self.respell_value(plan, item)?;
                    }
                }
            }
            single => is_changed |= self.respell_value(plan, single)?,
        }
        Ok(is_changed)
    }

    fn respell_value(&self, plan: &FieldPlan, value: &mut Value) -> Result<bool, Violation> {
        match value {
            Value::String(text) => {
                let rewritten = plan.spelling.and_then(|kind| kind.rewrite(text));
                let is_changed = rewritten.is_some();
                if let Some(rewritten) = rewritten {
                    *text = rewritten;
                }
                Ok(is_changed)
            }
            Value::Message(message) => match plan.nested {
                Some(index) => self.respell_at(index, message),
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }
}

fn respell_keys(
    field: &FieldDescriptor,
    spelling: Spelling,
    entries: &mut HashMap<MapKey, Value>,
) -> Result<bool, Violation> {
    let rewritten = |key: &MapKey| Some((key.clone(), spelling.rewrite(key.as_str()?)?));
    let changes: Vec<(MapKey, String)> = entries.keys().filter_map(rewritten).collect();
    for (old, new) in &changes {
        if let Some(value) = entries.remove(old)
            && entries.insert(MapKey::String(new.clone()), value).is_some()
        {
            return Err(Violation {
                field: format!("{}[{new:?}]", field.name()),
                rule: "map.one_spelling",
                message: "is there twice, in two spellings of one id".to_owned(),
            });
        }
    }
    Ok(!changes.is_empty())
}
