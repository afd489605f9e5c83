//! Ports, port groups and virtual interfaces of nodes.
//!
//! The cards of a machine are the ports of its node. The node's record has what clients say about them,
//! the ports of cards that were not seen yet, the port groups and the virtual interfaces; a change
//! replaces the record as a whole, locked by its generation.

mod group_change;
mod group_draft;
mod group_list;
mod node_scope;
mod node_vifs;
mod port_change;
mod port_draft;
mod port_list;
mod port_lookup;
mod written_fields;

use control_authz::FacadeMethod;
use http::Method;

use crate::methods;
use crate::request::IronicCall;
use crate::route::{HandlerFuture, IronicRoute};

/// A handler of ports.
type PortHandler = for<'a> fn(&'a IronicCall<'a>) -> HandlerFuture<'a>;

/// Path of a port.
const PORT: &str = "/ports/{port}";
/// Path of a port group.
const GROUP: &str = "/portgroups/{portgroup}";
/// Path of the virtual interfaces of a node.
const VIFS: &str = "/nodes/{node}/vifs";

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[
    of_ports("/ports", port_list::list),
    of_ports("/ports/detail", port_list::detail),
    of_ports("/nodes/{node}/ports", port_list::list_of_node),
    of_ports("/nodes/{node}/ports/detail", port_list::detail_of_node),
    of_ports("/portgroups/{portgroup}/ports", port_list::list_of_group),
    of_ports(
        "/portgroups/{portgroup}/ports/detail",
        port_list::detail_of_group,
    ),
    of_ports(PORT, port_list::show),
    route(
        Method::POST,
        "/ports",
        &methods::PORTS_CREATE,
        port_change::create,
    ),
    route(
        Method::PATCH,
        PORT,
        &methods::PORTS_UPDATE,
        port_change::update,
    ),
    route(
        Method::DELETE,
        PORT,
        &methods::PORTS_DELETE,
        port_change::delete,
    ),
    of_groups("/portgroups", group_list::list),
    of_groups("/portgroups/detail", group_list::detail),
    of_groups("/nodes/{node}/portgroups", group_list::list_of_node),
    of_groups(
        "/nodes/{node}/portgroups/detail",
        group_list::detail_of_node,
    ),
    of_groups(GROUP, group_list::show),
    route(
        Method::POST,
        "/portgroups",
        &methods::PORTGROUPS_CREATE,
        group_change::create,
    ),
    route(
        Method::PATCH,
        GROUP,
        &methods::PORTGROUPS_UPDATE,
        group_change::update,
    ),
    route(
        Method::DELETE,
        GROUP,
        &methods::PORTGROUPS_DELETE,
        group_change::delete,
    ),
    route(Method::GET, VIFS, &methods::NODES_GET, node_vifs::list),
    route(
        Method::POST,
        VIFS,
        &methods::NODES_ATTACH_VIF,
        node_vifs::attach,
    ),
    route(
        Method::DELETE,
        "/nodes/{node}/vifs/{vif}",
        &methods::NODES_DETACH_VIF,
        node_vifs::detach,
    ),
];

const fn of_ports(path: &'static str, run: PortHandler) -> IronicRoute {
    route(Method::GET, path, &methods::PORTS_GET, run)
}

const fn of_groups(path: &'static str, run: PortHandler) -> IronicRoute {
    route(Method::GET, path, &methods::PORTGROUPS_GET, run)
}

const fn route(
    verb: Method,
    path: &'static str,
    method: &'static FacadeMethod,
    run: PortHandler,
) -> IronicRoute {
    IronicRoute {
        verb,
        path,
        since: 0,
        method,
        run,
    }
}
