//! The answering side of Raft's network: channels that other members open.

use std::io;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use openraft::Raft;
use openraft::raft::AppendEntriesRequest;

use super::dialer::SelfId;
use crate::applier::Applier;
use crate::channel::Channel;
use crate::machine::StateMachine;
use crate::raft_types::TypeConfig;
use crate::snapshot_transfer::receive::SnapshotReceiver;
use crate::transport::Lane;
use crate::wire::{self, ControlQuestion, Hello, PeerRefusal};

/// Answers other members.
pub(crate) struct Inbound<M: StateMachine> {
    pub(crate) this: SelfId,
    pub(crate) raft: Arc<Raft<TypeConfig, Applier<M>>>,
    pub(crate) snapshots: Arc<SnapshotReceiver>,
}

impl<M: StateMachine> Clone for Inbound<M> {
    fn clone(&self) -> Self {
        Self {
            this: self.this,
            raft: self.raft.clone(),
            snapshots: self.snapshots.clone(),
        }
    }
}

impl<M: StateMachine> Inbound<M> {
    /// Reads the hello and returns the lane of the channel.
    ///
    /// # Errors
    /// The [`PeerRefusal`] that the caller got too.
    pub(crate) async fn greet(&self, from: u64, channel: &mut Channel) -> io::Result<Lane> {
        let hello: Hello = wire::hear(&channel.next().await?)?;
        // Checked before any Raft message is read: a vote or an entry of another cluster, or meant
        // for another node, would corrupt this log. It happens without malice, when addresses are
        // mixed up or a data directory is copied.
        let refusal = if hello.version != wire::VERSION {
            PeerRefusal::Version {
                from,
                theirs: hello.version,
            }
        } else if hello.cluster != self.this.cluster {
            PeerRefusal::OtherCluster {
                from,
                theirs: hello.cluster,
                ours: self.this.cluster,
            }
        } else if hello.from != from {
            PeerRefusal::OtherSender {
                certified: from,
                said: hello.from,
            }
        } else if hello.to != self.this.node {
            PeerRefusal::OtherNode {
                wanted: hello.to,
                ours: self.this.node,
            }
        } else {
            return Ok(hello.lane);
        };
        Err(turn_away(channel, refusal).await)
    }

    /// Serves one of Raft's own lanes until the other side closes it.
    pub(crate) async fn serve(&self, from: u64, lane: Lane, channel: Channel) -> io::Result<()> {
        match lane {
            Lane::Append | Lane::Heartbeat => self.appends(from, channel).await,
            Lane::Control => self.answer(channel).await,
            Lane::Snapshot => self.snapshots.receive(&self.raft, channel).await,
            // `Store::serve_peer` serves this lane itself.
            Lane::Forward => close(channel).await,
        }
    }

    /// Passes append requests to Raft as they arrive and sends its answers back in order.
    async fn appends(&self, from: u64, channel: Channel) -> io::Result<()> {
        let Channel {
            mut outgoing,
            incoming,
        } = channel;
        let requests = incoming.map(|frame| {
            frame.and_then(|frame| wire::hear::<AppendEntriesRequest<TypeConfig>>(&frame))
        });
        // An unreadable frame ends the input, because a skipped request would shift all answers by
        // one. The channel closes, and the leader opens another one and sends again.
        let requests = requests.take_while(move |request| {
            if let Err(error) = request {
                tracing::debug!(peer = from, error = %error, "a peer's channel broke");
            }
            std::future::ready(request.is_ok())
        });
        let requests = requests.filter_map(|request| std::future::ready(request.ok()));
        let mut answers = std::pin::pin!(self.raft.stream_append(requests));
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(answer) => outgoing.send(wire::say(&answer)?).await?,
                // Raft of this node has stopped. The refusal says so; a closed channel would look
                // like a broken network.
                Err(fatal) => {
                    let (node, reason) = (self.this.node, fatal.to_string());
                    let frame = wire::refuse(&PeerRefusal::Stopped { node, reason })?;
                    return outgoing.send(frame).await;
                }
            }
        }
        outgoing.close().await
    }

    /// Answers the one question of a control channel.
    async fn answer(&self, mut channel: Channel) -> io::Result<()> {
        let answer = match wire::hear(&channel.next().await?)? {
            ControlQuestion::Vote(request) => {
                let answer = self.raft.vote(request).await;
                answer.map(|a| wire::say(&a)).map_err(|e| e.to_string())
            }
            ControlQuestion::PreVote(request) => {
                let answer = self.raft.pre_vote(request).await;
                answer.map(|a| wire::say(&a)).map_err(|e| e.to_string())
            }
            ControlQuestion::TransferLeader(request) => {
                let answer = self.raft.handle_transfer_leader(request).await;
                answer.map(|a| wire::say(&a)).map_err(|e| e.to_string())
            }
        };
        let node = self.this.node;
        let frame =
            answer.unwrap_or_else(|reason| wire::refuse(&PeerRefusal::Stopped { node, reason }))?;
        channel.send(frame).await?;
        channel.outgoing.close().await
    }
}

async fn close(mut channel: Channel) -> io::Result<()> {
    channel.outgoing.close().await
}

/// Sends `refusal` to the caller, closes the channel, and returns the refusal as an error.
pub(crate) async fn turn_away(channel: &mut Channel, refusal: PeerRefusal) -> io::Error {
    if let Ok(frame) = wire::refuse(&refusal)
        && channel.send(frame).await.is_ok()
    {
        drop(channel.outgoing.close().await);
    }
    io::Error::new(io::ErrorKind::PermissionDenied, refusal)
}
