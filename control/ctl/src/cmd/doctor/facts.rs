//! What the report is over. The shell fills it; nothing here asks anybody.

use proto_public::api::v2::MachineIssues;
use proto_public::metalmesh::admin::v1::{
    ClusterServiceStatusResponse, DoctorServiceGetResponse, Identity,
};

use super::audit::AuditFacts;

/// What is known, or why it is not.
pub(super) type Known<T> = Result<T, String>;

/// A file that is its owner's alone.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) path: String,
    /// Permission bits.
    pub(super) mode: u32,
}

/// A control node's API.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Where it was asked.
    pub(super) url: String,
    /// Milliseconds until the TCP connection was there.
    pub(super) tcp_ms: Known<u64>,
    /// What it says of itself.
    pub(super) said: Known<DoctorServiceGetResponse>,
    /// Milliseconds that its clock is ahead of the one here; and how much that may be wrong.
    pub(super) skew_ms: Option<(i64, u64)>,
}

/// An address where agents call.
#[derive(Clone, Debug)]
pub(super) struct Mesh {
    pub(super) node: u64,
    pub(super) address: String,
    /// Milliseconds until something that speaks QUIC answered.
    pub(super) quic_ms: Known<u64>,
}

/// Everything.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Seconds since 1970, by the clock here.
    pub(super) now_s: i64,
    pub(super) context: Option<File>,
    /// Of a control node on this host.
    pub(super) keys: Vec<File>,
    pub(super) nodes: Vec<Node>,
    pub(super) mesh: Vec<Mesh>,
    pub(super) cluster: Known<ClusterServiceStatusResponse>,
    pub(super) identities: Known<Vec<Identity>>,
    pub(super) issues: Known<Vec<MachineIssues>>,
    pub(super) audit: Known<AuditFacts>,
}

impl Facts {
    /// What nodes said of themselves.
    pub(super) fn answers(&self) -> impl Iterator<Item = &DoctorServiceGetResponse> {
        self.nodes.iter().filter_map(|it| it.said.as_ref().ok())
    }

    /// The node that has the agents' sessions, when it was asked.
    pub(super) fn serving(&self) -> Option<&DoctorServiceGetResponse> {
        self.answers().find(|it| it.serves_sessions)
    }

    /// Why no node said anything.
    pub(super) fn silence(&self) -> String {
        let mut errors = self.nodes.iter().filter_map(|it| it.said.as_ref().err());
        errors.next().cloned().unwrap_or_default()
    }
}
