//! Nodes: lists, fields, changes, traits, maintenance.

use crate::route::IronicRoute;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[];
