//! Lists of allocations, and one of them.

use std::sync::Arc;

use control_state::query::pool_allocations;
use control_state::{MachinePool, NodeAllocation, Tables};
use proto_types::{MachineId, ProjectId, ResourceClass};

use super::found_allocation::{found_allocation, is_seen};
use crate::access::seen_node;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{
    ListQuery, ListRow, SortValue, asked_fields, check_parameters, list_scope, page, selected,
};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::allocation;

/// Filters of a list.
const FILTERS: [&str; 4] = ["node", "resource_class", "state", "owner"];
/// Fields of an allocation.
const FIELDS: [&str; 13] = [
    "uuid",
    "name",
    "resource_class",
    "state",
    "node_uuid",
    "owner",
    "candidate_nodes",
    "traits",
    "extra",
    "last_error",
    "created_at",
    "updated_at",
    "links",
];
/// Fields that rows are sorted by.
const SORT_KEYS: [&str; 8] = [
    "name",
    "resource_class",
    "state",
    "node_uuid",
    "owner",
    "last_error",
    "created_at",
    "updated_at",
];

/// The filters of a request. `None` means that it does not filter by it.
#[derive(Debug, Default, PartialEq, Eq)]
struct AllocationFilter {
    /// The node.
    node: Option<MachineId>,
    /// The canonical resource class.
    class: Option<String>,
    /// The state.
    state: Option<String>,
}

impl AllocationFilter {
    fn passes(&self, held: &NodeAllocation) -> bool {
        let node = self.node.is_none_or(|node| held.machine == Some(node));
        let class = self.class.as_ref();
        let class = class.is_none_or(|class| *class == held.resource_class.canonical());
        let state = self.state.as_ref();
        node && class && state.is_none_or(|state| state == held.state.as_str())
    }
}

/// `GET /allocations`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let scope = list_scope(call, "allocation")?;
        check_parameters(call, &FILTERS)?;
        let query = ListQuery::of(call, &SORT_KEYS, &FIELDS)?;
        let owner = owner(call.asked("owner"), scope)?;
        let found = call.read(|tables| {
            let filter = filter(call, tables)?;
            let seen = |held: &&Arc<NodeAllocation>| filter.passes(held) && is_seen(call, held);
            let rows = match owner {
                Some(owner) => {
                    let own = pool_allocations(tables, MachinePool::Of(owner));
                    rows(call, &query, own.filter(seen))
                }
                None => rows(call, &query, tables.all::<NodeAllocation>().filter(seen)),
            };
            page(call, &query, "allocations", "/allocations", rows)
        });
        Ok(IronicAnswer::ok(found.await?))
    })
}

/// `GET /allocations/{allocation}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let held = found_allocation(call, None).await?;
        let fields = asked_fields(call, &FIELDS)?;
        let shown = selected(allocation(&held, call.base), fields.as_deref());
        Ok(IronicAnswer::ok(shown))
    })
}

fn rows<'a>(
    call: &'a IronicCall<'_>,
    query: &ListQuery,
    found: impl Iterator<Item = &'a Arc<NodeAllocation>>,
) -> Vec<ListRow<'a>> {
    let rows = found.map(|held| ListRow {
        key: held.id.to_string(),
        sort: sort_value(held, &query.sort_key),
        make: Box::new(move || allocation(held, call.base)),
    });
    rows.collect()
}

/// The owner whose allocations are listed. `None` means all. `scope` is the caller's project, if it may
/// list its own alone.
///
/// # Errors
/// 403 for another owner than the caller's, 400 for a text that is no id.
fn owner(asked: Option<&str>, scope: Option<ProjectId>) -> Result<Option<ProjectId>, IronicError> {
    let asked = asked.filter(|text| !text.is_empty());
    let asked = asked.map(|text| {
        let parsed = text.parse::<ProjectId>();
        parsed.map_err(|_| IronicError::invalid("owner: must be the id of a project, a UUID"))
    });
    let asked = asked.transpose()?;
    match (asked, scope) {
        (Some(asked), Some(own)) if asked != own => {
            Err(IronicError::forbidden("baremetal:allocation:list_all"))
        }
        (asked, scope) => Ok(scope.or(asked)),
    }
}

fn filter(call: &IronicCall<'_>, tables: &Tables) -> Result<AllocationFilter, IronicError> {
    let node = call.asked("node").map(|ident| {
        let seen = seen_node(tables, call.policy, call.caller, ident);
        // As in Ironic: the node is a part of the question, and not its object.
        seen.map(|node| node.id())
            .map_err(|error| IronicError::invalid(error.text))
    });
    let class = call.asked("resource_class").map(|text| {
        let class = text.parse::<ResourceClass>();
        // A text that is no class is that of no allocation.
        class.map_or_else(|_| text.to_owned(), |class| class.canonical())
    });
    Ok(AllocationFilter {
        node: node.transpose()?,
        class,
        state: call.asked("state").map(str::to_owned),
    })
}

fn sort_value(held: &NodeAllocation, key: &str) -> SortValue {
    let text = |text: Option<String>| SortValue::text(text.unwrap_or_default());
    match key {
        "name" => text(held.name.clone()),
        "resource_class" => SortValue::text(held.resource_class.as_str()),
        "state" => SortValue::text(held.state.as_str()),
        "node_uuid" => text(held.machine.map(|machine| machine.to_string())),
        "owner" => text(held.owner.map(|owner| owner.to_string())),
        "last_error" => SortValue::text(held.last_error.as_str()),
        "created_at" => SortValue::Number(held.meta.created_at.ms()),
        "updated_at" => SortValue::Number(held.meta.updated_at.ms()),
        _ => SortValue::Absent,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use control_state::{Meta, NodeAllocationState};
    use http::StatusCode;
    use proto_types::{NodeAllocationId, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn project(number: u128) -> ProjectId {
        Uuid::from_u128(number).into()
    }

    fn held() -> NodeAllocation {
        NodeAllocation {
            id: NodeAllocationId::new(Uuid::from_u128(1)),
            meta: Meta {
                created_at: Timestamp::from_ms(7),
                ..Meta::default()
            },
            name: None,
            owner: Some(project(9)),
            resource_class: "x-large".parse().unwrap(),
            traits: BTreeSet::new(),
            candidates: BTreeSet::new(),
            state: NodeAllocationState::Error,
            machine: None,
            last_error: "none".to_owned(),
            extra: BTreeMap::new(),
        }
    }

    #[test]
    fn a_project_lists_its_own() {
        let text = project(9).to_string();
        for (asked, scope, expected) in [
            (None, None, Ok(None)),
            (Some(text.as_str()), None, Ok(Some(project(9)))),
            (None, Some(project(9)), Ok(Some(project(9)))),
            (Some(""), Some(project(9)), Ok(Some(project(9)))),
            (Some(text.as_str()), Some(project(9)), Ok(Some(project(9)))),
            (
                Some(text.as_str()),
                Some(project(8)),
                Err(StatusCode::FORBIDDEN),
            ),
            (Some("ada"), None, Err(StatusCode::BAD_REQUEST)),
        ] {
            let found = owner(asked, scope).map_err(|error| error.status);
            assert_eq!(found, expected, "{asked:?} {scope:?}");
        }
    }

    #[test]
    fn filters_by_node_class_and_state() {
        let class = |text: &str| AllocationFilter {
            class: Some(text.to_owned()),
            ..AllocationFilter::default()
        };
        let state = |text: &str| AllocationFilter {
            state: Some(text.to_owned()),
            ..AllocationFilter::default()
        };
        let node = AllocationFilter {
            node: Some(MachineId::new(Uuid::from_u128(7))),
            ..AllocationFilter::default()
        };
        for (filter, expected) in [
            (AllocationFilter::default(), true),
            (class("CUSTOM_X_LARGE"), true),
            (class("CUSTOM_LARGE"), false),
            (state("error"), true),
            (state("active"), false),
            (node, false),
        ] {
            assert_eq!(filter.passes(&held()), expected, "{filter:?}");
        }
    }

    #[test]
    fn rows_are_sorted_by_their_fields() {
        for (key, expected) in [
            ("name", SortValue::Absent),
            ("state", SortValue::text("error")),
            ("node_uuid", SortValue::Absent),
            ("created_at", SortValue::Number(7)),
            ("uuid", SortValue::Absent),
        ] {
            assert_eq!(sort_value(&held(), key), expected, "{key}");
        }
    }
}
