//! What members say to each other, as frames: one byte for the kind, then CBOR.

use std::io;

use bytes::Bytes;
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::raft_types::{CommandBatch, Entry, TypeConfig};
use crate::transport::Lane;

/// The version of these frames; both ends must have the same.
pub(crate) const VERSION: u32 = 1;
/// Bytes of entries in one request; a single larger entry travels alone.
const REQUEST_BYTES_MAX: usize = 4 << 20;

const REFUSED: u8 = 0;
const SAID: u8 = 1;

/// First frame of every channel: which cluster it is about and who talks to whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    pub(crate) cluster: Uuid,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) lane: Lane,
}

/// Why a member does not talk to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PeerRefusal {
    /// It belongs to another cluster.
    #[error(
        "node {from} belongs to cluster {theirs}, this node to cluster {ours}: it must be joined \
         to this cluster with an empty data directory, or not at all"
    )]
    OtherCluster {
        /// Who called.
        from: u64,
        /// Its cluster's id.
        theirs: Uuid,
        /// The called node's cluster's id.
        ours: Uuid,
    },
    /// The address belongs to another node now.
    #[error("node {wanted} was called, but node {ours} answers here: correct the peer address")]
    OtherNode {
        /// Who was called.
        wanted: u64,
        /// Who answered.
        ours: u64,
    },
    /// Its certificate names another node than it claims to be.
    #[error("the certificate is node {certified}'s, but the caller says that it is node {said}")]
    OtherSender {
        /// Who the transport says it is.
        certified: u64,
        /// Who it says it is.
        said: u64,
    },
    /// It speaks another version of the protocol.
    #[error("node {from} speaks version {theirs} of the peers' protocol, this node {VERSION}")]
    Version {
        /// Who called.
        from: u64,
        /// Its version.
        theirs: u32,
    },
    /// It said something that does not belong there.
    #[error("node {from} sent a message that cannot be read: {reason}")]
    Unreadable {
        /// Who called.
        from: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The called node cannot go on.
    #[error("node {node} stopped: {reason}")]
    Stopped {
        /// The called node.
        node: u64,
        /// Why.
        reason: String,
    },
}

/// A question of [`Lane::Control`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ControlQuestion {
    Vote(VoteRequest<TypeConfig>),
    PreVote(VoteRequest<TypeConfig>),
    TransferLeader(TransferLeaderRequest<TypeConfig>),
}

pub(crate) type Appended = StreamAppendResult<TypeConfig>;
pub(crate) type Voted = VoteResponse<TypeConfig>;
pub(crate) type Transferred = TransferLeaderResponse<TypeConfig>;
pub(crate) type Installed = SnapshotResponse<TypeConfig>;

/// A frame with a value in it.
pub(crate) fn say<T: Serialize>(value: &T) -> io::Result<Bytes> {
    let mut out = vec![SAID];
    ciborium::into_writer(value, &mut out).map_err(io::Error::other)?;
    Ok(out.into())
}

/// A frame with a refusal; the channel ends behind it.
pub(crate) fn refuse(refusal: &PeerRefusal) -> io::Result<Bytes> {
    let mut out = vec![REFUSED];
    ciborium::into_writer(refusal, &mut out).map_err(io::Error::other)?;
    Ok(out.into())
}

/// What a frame says; a refusal becomes an error that carries [`PeerRefusal`].
pub(crate) fn hear<T: DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    let unreadable = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    match frame.split_first() {
        Some((&SAID, rest)) => {
            ciborium::from_reader(rest).map_err(|e| unreadable(format!("bad frame: {e}")))
        }
        Some((&REFUSED, rest)) => {
            let refusal: PeerRefusal =
                ciborium::from_reader(rest).map_err(|e| unreadable(format!("bad refusal: {e}")))?;
            Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal))
        }
        _ => Err(unreadable("a frame of unknown kind".to_owned())),
    }
}

/// Cuts a request into such that fit into frames; each is a request of its own.
pub(crate) fn split(
    request: AppendEntriesRequest<TypeConfig>,
) -> impl Iterator<Item = AppendEntriesRequest<TypeConfig>> {
    let AppendEntriesRequest {
        vote,
        mut prev_log_id,
        entries,
        leader_commit,
    } = request;
    let mut entries = entries.into_iter().peekable();
    let mut is_first = true;
    std::iter::from_fn(move || {
        if entries.peek().is_none() && !is_first {
            return None;
        }
        is_first = false;
        let mut part = Vec::new();
        let mut bytes = 0;
        while let Some(entry) = entries.peek() {
            bytes += entry_bytes(entry);
            if !part.is_empty() && bytes > REQUEST_BYTES_MAX {
                break;
            }
            part.extend(entries.next());
        }
        let request = AppendEntriesRequest {
            vote,
            prev_log_id,
            entries: part,
            leader_commit,
        };
        let last: Option<&Entry> = request.entries.last();
        prev_log_id = last.map_or(prev_log_id, |e| Some(e.log_id));
        Some(request)
    })
}

/// About how many bytes an entry has.
pub(crate) fn entry_bytes(entry: &Entry) -> usize {
    match &entry.payload {
        openraft::EntryPayload::Normal(CommandBatch(commands)) => {
            commands.iter().map(|c| c.len() + 8).sum()
        }
        _ => 64,
    }
}
