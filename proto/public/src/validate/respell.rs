//! Rewrites the ids of a message to their canonical form, along the plans of its rules.
//!
//! The rules of the contract (`string.uuid` and the like) tell which fields are ids. Our own messages
//! have no rules; their ids are listed in [`UNRULED`].

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, Value};

use super::Violation;
use super::plan::{FieldPlan, Plans};
use super::rule::Rule;
use super::unruled::UNRULED;
use crate::spelling::Spelling;

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
