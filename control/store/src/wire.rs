//! Messages between members, as frames: one byte for the kind, then CBOR.

use std::io;

use bytes::Bytes;
use openraft::raft::{AppendEntriesRequest, SnapshotResponse, TransferLeaderRequest, VoteRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::raft_types::{CommandBatch, Entry, TypeConfig};
use crate::transport::Lane;

pub(crate) use crate::peer_refusal::{PeerRefusal, VERSION};

/// Most bytes of entries in one append request, so that it fits a frame. A request with more is
/// split; a single larger entry has a request of its own.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Kind of a frame with a [`PeerRefusal`].
const REFUSED: u8 = 0;
/// Kind of a frame with any other message.
const SAID: u8 = 1;

/// First frame of every channel: the cluster, the caller, the member that it means to reach, and
/// the lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    pub(crate) cluster: Uuid,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) lane: Lane,
}

/// A question of [`Lane::Control`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ControlQuestion {
    Vote(VoteRequest<TypeConfig>),
    PreVote(VoteRequest<TypeConfig>),
    TransferLeader(TransferLeaderRequest<TypeConfig>),
}

/// Answer to a snapshot that was transferred whole.
pub(crate) type Installed = SnapshotResponse<TypeConfig>;

/// Encodes a message as a frame.
pub(crate) fn say<T: Serialize>(value: &T) -> io::Result<Bytes> {
    let mut out = vec![SAID];
    ciborium::into_writer(value, &mut out).map_err(io::Error::other)?;
    Ok(out.into())
}

/// Encodes a refusal as a frame; it is the last one of its channel.
pub(crate) fn refuse(refusal: &PeerRefusal) -> io::Result<Bytes> {
    let mut out = vec![REFUSED];
    ciborium::into_writer(refusal, &mut out).map_err(io::Error::other)?;
    Ok(out.into())
}

/// Decodes a frame.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] with the [`PeerRefusal`] if the frame is one;
/// [`io::ErrorKind::InvalidData`] if it cannot be decoded.
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

/// Splits a request into parts that fit a frame; each is a complete request.
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
        // A request without entries still has one part: a heartbeat, or the news of a commit index.
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
        // The log matching check of each part is against the last entry of the part before it. With
        // the first part's entry in all of them the follower would accept a part although it lacks
        // the entries of the parts before.
        prev_log_id = last.map_or(prev_log_id, |entry| Some(entry.log_id));
        Some(request)
    })
}

/// Approximate size of an encoded entry, bytes.
pub(crate) fn entry_bytes(entry: &Entry) -> usize {
    match &entry.payload {
        openraft::EntryPayload::Normal(CommandBatch(commands)) => {
            commands.iter().map(|c| c.len() + 8).sum()
        }
        _ => 64,
    }
}
