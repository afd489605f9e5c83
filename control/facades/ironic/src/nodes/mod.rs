//! Nodes: lists, fields, changes, traits, maintenance.
//!
//! A change of a node becomes one command about its machine (owner, lease, class) and its record,
//! which has the fields that only clients of this API read: a change that is refused changes nothing.
//! `node_draft` reads an object that a client changed, `node_checks` and `tenure_change` decide what may
//! follow from it.

mod draft_links;
#[cfg(test)]
mod draft_tests;
mod node_checks;
mod node_create;
mod node_display;
mod node_draft;
mod node_filter;
mod node_list;
mod node_maintenance;
mod node_object;
mod node_order;
mod node_traits;
mod node_update;
mod node_validate;
mod node_volumes;
mod tenure_change;
mod update_rules;

use control_authz::FacadeMethod;
use http::Method;

use crate::methods;
use crate::request::IronicCall;
use crate::route::{HandlerFuture, IronicRoute};

/// A handler of nodes.
type NodeHandler = for<'a> fn(&'a IronicCall<'a>) -> HandlerFuture<'a>;

/// Microversion that introduced children of nodes.
const CHILDREN: u16 = 83;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[
    list("/nodes", node_list::list),
    list("/nodes/detail", node_list::detail),
    list("/chassis/{chassis}/nodes", node_list::list_of_chassis),
    list(
        "/chassis/{chassis}/nodes/detail",
        node_list::detail_of_chassis,
    ),
    route(
        Method::POST,
        "/nodes",
        &methods::NODES_CREATE,
        node_create::create,
    ),
    get("/nodes/{node}", node_list::show),
    route(
        Method::PATCH,
        "/nodes/{node}",
        &methods::NODES_UPDATE,
        node_update::update,
    ),
    route(
        Method::DELETE,
        "/nodes/{node}",
        &methods::NODES_DELETE,
        node_create::delete,
    ),
    route(
        Method::GET,
        "/nodes/{node}/validate",
        &methods::NODES_VALIDATE,
        node_validate::validate,
    ),
    maintenance(Method::PUT, node_maintenance::set),
    maintenance(Method::DELETE, node_maintenance::clear),
    get("/nodes/{node}/traits", node_traits::list),
    traits(Method::PUT, "/nodes/{node}/traits", node_traits::replace),
    traits(Method::DELETE, "/nodes/{node}/traits", node_traits::clear),
    traits(
        Method::PUT,
        "/nodes/{node}/traits/{trait}",
        node_traits::add,
    ),
    traits(
        Method::DELETE,
        "/nodes/{node}/traits/{trait}",
        node_traits::remove,
    ),
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/children",
        since: CHILDREN,
        method: &methods::NODES_GET,
        run: node_list::children,
    },
    get("/nodes/{node}/volume", node_volumes::show),
    get("/nodes/{node}/volume/connectors", node_volumes::connectors),
    get("/nodes/{node}/volume/targets", node_volumes::targets),
];

const fn list(path: &'static str, run: NodeHandler) -> IronicRoute {
    route(Method::GET, path, &methods::NODES_LIST, run)
}

const fn get(path: &'static str, run: NodeHandler) -> IronicRoute {
    route(Method::GET, path, &methods::NODES_GET, run)
}

const fn maintenance(verb: Method, run: NodeHandler) -> IronicRoute {
    let method = &methods::NODES_SET_MAINTENANCE;
    route(verb, "/nodes/{node}/maintenance", method, run)
}

const fn traits(verb: Method, path: &'static str, run: NodeHandler) -> IronicRoute {
    route(verb, path, &methods::NODES_SET_TRAITS, run)
}

const fn route(
    verb: Method,
    path: &'static str,
    method: &'static FacadeMethod,
    run: NodeHandler,
) -> IronicRoute {
    IronicRoute {
        verb,
        path,
        since: 0,
        method,
        run,
    }
}
