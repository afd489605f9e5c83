//! Streams of orders to agents of the published stack.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A stream on which a control node hands out orders to an agent of the published stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BmcStream {
    /// Id of the control node that serves it.
    pub node: u64,
    /// Id, new for each stream.
    pub id: Uuid,
}
