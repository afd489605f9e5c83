//! The calls of Neutron that Ironic's clients make.

use crate::route::IronicRoute;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[];
