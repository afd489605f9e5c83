//! The life of nodes: provision states, power, boot device, and what was observed of them.

use crate::route::IronicRoute;

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[];
