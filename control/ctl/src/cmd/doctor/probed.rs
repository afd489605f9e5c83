//! Files, nodes and addresses as the doctor found them.

use proto_public::metalmesh::admin::v1::DoctorServiceGetResponse;

use super::facts::FactResult;

/// A file that only its owner should be able to read.
#[derive(Clone, Debug)]
pub(super) struct PrivateFile {
    pub(super) path: String,
    /// Permission bits.
    pub(super) mode: u32,
}

/// A control node's API.
#[derive(Clone, Debug)]
pub(super) struct ProbedNode {
    /// URL of its API.
    pub(super) url: String,
    /// Time to open a TCP connection, milliseconds.
    pub(super) tcp_ms: FactResult<u64>,
    /// Its report on itself.
    pub(super) said: FactResult<DoctorServiceGetResponse>,
    /// Milliseconds that its clock is ahead of this host's, and the error bound of that number.
    pub(super) skew_ms: Option<(i64, u64)>,
}

/// A mesh address of a node, which agents connect to.
#[derive(Clone, Debug)]
pub(super) struct ProbedAddress {
    pub(super) node: u64,
    pub(super) address: String,
    /// Time until a QUIC server answered, milliseconds.
    pub(super) quic_ms: FactResult<u64>,
}
