//! The calls of Neutron that Ironic's clients make: networks and subnets to read, and ports, which
//! nodes attach as virtual interfaces.
//!
//! A subnet is a prefix of a network. A port is a document that names a network; it shows the card and
//! the addresses of the machine that it is bound to. Every role of a scope reads, and members change
//! ports. Ironic's policy has no rules for these calls.

mod collection;
mod networks;
mod port_binding;
mod port_fields;
mod ports;
mod reach;

use http::Method;

use crate::methods;
use crate::route::IronicRoute;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[
    IronicRoute {
        verb: Method::GET,
        path: "/v2.0",
        since: 0,
        method: &methods::NETWORKS_GET,
        run: networks::version,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/v2.0/networks",
        since: 0,
        method: &methods::NETWORKS_GET,
        run: networks::list,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/v2.0/networks/{network}",
        since: 0,
        method: &methods::NETWORKS_GET,
        run: networks::show,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/v2.0/subnets",
        since: 0,
        method: &methods::NETWORKS_GET,
        run: networks::list_subnets,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/v2.0/subnets/{subnet}",
        since: 0,
        method: &methods::NETWORKS_GET,
        run: networks::show_subnet,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/v2.0/ports",
        since: 0,
        method: &methods::NETWORK_PORTS_GET,
        run: ports::list,
    },
    IronicRoute {
        verb: Method::POST,
        path: "/v2.0/ports",
        since: 0,
        method: &methods::NETWORK_PORTS_CREATE,
        run: ports::create,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/v2.0/ports/{port}",
        since: 0,
        method: &methods::NETWORK_PORTS_GET,
        run: ports::show,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/v2.0/ports/{port}",
        since: 0,
        method: &methods::NETWORK_PORTS_UPDATE,
        run: ports::update,
    },
    IronicRoute {
        verb: Method::DELETE,
        path: "/v2.0/ports/{port}",
        since: 0,
        method: &methods::NETWORK_PORTS_DELETE,
        run: ports::delete,
    },
];
