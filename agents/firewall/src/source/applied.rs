use std::sync::Arc;

use super::SourceObjects;
use crate::admit::Problem;

/// The fate of a source's snapshot.
#[derive(Clone, Debug)]
pub struct AppliedObjects {
    /// The snapshot.
    pub objects: Arc<SourceObjects>,
    /// Objects of all sources that were refused. All others of the snapshot are in force, unless
    /// there is a `refusal`.
    pub problems: Arc<Vec<Problem>>,
    /// The reason why the snapshot as a whole is not in force: it was rolled back, or the kernel
    /// refused it. `None` if it is in force.
    pub refusal: Option<String>,
}
