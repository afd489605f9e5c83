//! The site: drivers, conductors, chassis, deploy templates, runbooks, and lists that are empty.

use crate::route::IronicRoute;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[];
