//! Commands about the certificate authority and the keys that sign tokens.

use serde::{Deserialize, Serialize};

use crate::identity::entity::{CaRecord, SigningKey};

/// See [`Op::PutCa`](crate::Op::PutCa).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutCa(pub CaRecord);

/// See [`Op::PutSigningKey`](crate::Op::PutSigningKey).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutSigningKey(pub SigningKey);
