//! Allocations: machines that are held by class and traits before they are installed.
//!
//! A project has its own, and does not learn of others'. The state chooses the machine in the command
//! that creates an allocation, so that it is never `allocating`.

mod allocation_change;
mod allocation_list;
mod allocation_request;
mod found_allocation;
mod node_allocation;

use http::Method;

use crate::methods;
use crate::route::IronicRoute;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[
    IronicRoute {
        verb: Method::GET,
        path: "/allocations",
        since: 52,
        method: &methods::ALLOCATIONS_GET,
        run: allocation_list::list,
    },
    IronicRoute {
        verb: Method::POST,
        path: "/allocations",
        since: 52,
        method: &methods::ALLOCATIONS_CREATE,
        run: allocation_change::create,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/allocations/{allocation}",
        since: 52,
        method: &methods::ALLOCATIONS_GET,
        run: allocation_list::show,
    },
    IronicRoute {
        verb: Method::PATCH,
        path: "/allocations/{allocation}",
        since: 57,
        method: &methods::ALLOCATIONS_UPDATE,
        run: allocation_change::update,
    },
    IronicRoute {
        verb: Method::DELETE,
        path: "/allocations/{allocation}",
        since: 52,
        method: &methods::ALLOCATIONS_DELETE,
        run: allocation_change::delete,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/allocation",
        since: 52,
        method: &methods::ALLOCATIONS_GET,
        run: node_allocation::show,
    },
    IronicRoute {
        verb: Method::DELETE,
        path: "/nodes/{node}/allocation",
        since: 52,
        method: &methods::ALLOCATIONS_DELETE,
        run: node_allocation::delete,
    },
];
