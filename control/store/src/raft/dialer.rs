//! Opens channels to other members.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::channel::Channel;
use crate::deadline::within;
use crate::transport::{ClusterMember, Lane, Transport};
use crate::wire::{self, ControlQuestion, Hello, PeerRefusal};

/// This node's identity, as it stands in the hello of every channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfId {
    pub(crate) cluster: Uuid,
    pub(crate) node: u64,
}

/// Opens channels to other members and sends the hello.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub(crate) this: SelfId,
    pub(crate) transport: Arc<dyn Transport>,
    /// The latest refusal of each member that turns this node away.
    pub(crate) refusals: Arc<Mutex<BTreeMap<u64, String>>>,
}

impl Dialer {
    pub(crate) async fn open(
        &self,
        member: &ClusterMember,
        lane: Lane,
        limit: Duration,
    ) -> io::Result<Channel> {
        let hello = Hello {
            version: wire::VERSION,
            cluster: self.this.cluster,
            from: self.this.node,
            to: member.node,
            lane,
        };
        let opened = async {
            let mut channel = self.transport.open(member, lane).await?;
            channel.send(wire::say(&hello)?).await?;
            Ok(channel)
        };
        within(limit, opened).await
    }

    /// Asks one question on a channel of its own.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        member: &ClusterMember,
        question: &ControlQuestion,
        limit: Duration,
    ) -> io::Result<T> {
        let asked = async {
            let mut channel = self.open(member, Lane::Control, limit).await?;
            // A member that turns this node away closes the channel after the hello, and the send
            // may fail for that. Its refusal is still there to read, and says more than a broken
            // pipe.
            let sent = channel.send(wire::say(question)?).await;
            let answer = channel.next().await;
            wire::hear(&answer.map_err(|e| sent.err().unwrap_or(e))?)
        };
        let answer = within(limit, asked).await;
        self.note_refusal(member.node, &answer);
        answer
    }

    /// Logs each member that turns this node away, once per reason.
    fn note_refusal<T>(&self, node: u64, answer: &io::Result<T>) {
        let refusal = answer.as_ref().err().and_then(io::Error::get_ref);
        let refusal = refusal.and_then(|e| e.downcast_ref::<PeerRefusal>());
        // A node that every member refuses only stands for election again and again. Nothing else
        // tells the operator why; once per reason, because such a node asks about once a second.
        let mut known = self.refusals.lock();
        let Some(refusal) = refusal else {
            if answer.is_ok() {
                known.remove(&node);
            }
            return;
        };
        let text = refusal.to_string();
        if known.get(&node) != Some(&text) {
            tracing::error!(node, error = %text, "a control node refuses this one");
            known.insert(node, text);
        }
    }
}
