//! Ports, port groups and virtual interfaces of nodes.

use crate::route::IronicRoute;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[];
