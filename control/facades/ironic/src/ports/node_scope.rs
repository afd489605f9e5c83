//! The nodes whose ports or port groups a list has.

use control_state::Tables;
use proto_types::MacAddr;

use super::port_lookup::{machines_of_card, seen_group};
use crate::access::{SeenNode, find_node, seen_node};
use crate::error::IronicError;
use crate::listing::{is_of, list_scope, visible_nodes};
use crate::request::IronicCall;

/// The part of the site that a list is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeScope<'a> {
    /// Every node.
    All,
    /// The node of this id or name.
    Node(&'a str),
    /// The node that has the port group of this id or name.
    Group(&'a str),
    /// The node that has a card of this address.
    Card(MacAddr),
}

impl NodeScope<'_> {
    /// Its nodes that the caller may list, in the order of ids. `kind` is that of the list's objects in
    /// the names of rules.
    ///
    /// # Errors
    /// 404 for a node or a group that the caller does not see, 403 if the policy permits no list.
    pub(super) fn nodes(
        self,
        call: &IronicCall<'_>,
        tables: &Tables,
        kind: &str,
    ) -> Result<Vec<SeenNode>, IronicError> {
        let node = match self {
            Self::All => return visible_nodes(call, tables, kind),
            Self::Node(ident) => Some(seen_node(tables, call.policy, call.caller, ident)?),
            Self::Group(ident) => Some(seen_group(call, tables, ident)?.node),
            // An address is no name of an object: one that the caller does not see has no row.
            Self::Card(mac) => {
                let machines = machines_of_card(tables, mac).into_iter();
                let mut nodes = machines.filter_map(|id| find_node(tables, &id.to_string()));
                nodes.find(|node| node.is_seen_by(call.policy, call.caller))
            }
        };
        let scope = list_scope(call, kind)?;
        let is_listed = |node: &SeenNode| scope.is_none_or(|project| is_of(node, project));
        Ok(node.filter(is_listed).into_iter().collect())
    }
}
