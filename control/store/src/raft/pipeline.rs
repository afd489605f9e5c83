//! Pipelined append requests to one follower.

use std::io;
use std::time::Duration;

use futures::{Stream, StreamExt};
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use tokio::time::{Instant, sleep_until};

use super::network::Peer;
use crate::channel::Channel;
use crate::deadline::within;
use crate::raft_types::TypeConfig;
use crate::wire;

/// Most append requests in flight to one follower (pipelining). Beyond it the pipeline takes no
/// further request from openraft before an answer; the parts of one split request may exceed it.
const IN_FLIGHT_MAX: usize = 64;

/// Append requests in flight to one follower; it answers them in order.
pub(super) struct Pipeline<'s, S> {
    pub(super) peer: &'s mut Peer,
    /// `None` until the first request. openraft's pause after an error is in the stream of
    /// requests: a channel that is opened before the first one would dial a dead member without any
    /// pause.
    pub(super) channel: Option<Channel>,
    pub(super) open_limit: Duration,
    /// `None` once openraft has no more requests.
    pub(super) input: Option<S>,
    pub(super) in_flight: usize,
    /// Time limit for the next answer.
    pub(super) patience: Duration,
    pub(super) give_up: Instant,
}

impl<S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin> Pipeline<'_, S> {
    /// The next answer; `None` once every request is answered.
    pub(super) async fn next(&mut self) -> Option<io::Result<StreamAppendResult<TypeConfig>>> {
        loop {
            if self.input.is_none() && self.in_flight == 0 {
                return None;
            }
            let may_send = self.input.is_some() && self.in_flight < IN_FLIGHT_MAX;
            let request = async {
                match &mut self.input {
                    Some(input) => input.next().await,
                    None => None,
                }
            };
            let answer = async {
                match &mut self.channel {
                    Some(channel) => channel.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // Answers first: each makes room in flight and moves the commit index.
                answer = answer, if self.in_flight > 0 => {
                    self.in_flight -= 1;
                    self.give_up = Instant::now() + self.patience;
                    return Some(answer.and_then(|frame| wire::hear(&frame)));
                }
                request = request, if may_send => match request {
                    None => self.input = None,
                    Some(request) => if let Err(error) = self.send(request).await {
                        return Some(Err(self.cause(error).await));
                    },
                },
                () = sleep_until(self.give_up), if self.in_flight > 0 => {
                    let ms = self.patience.as_millis();
                    let message = format!("node {} did not answer within {ms} ms", self.peer.member.node);
                    return Some(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
                }
            }
        }
    }

    async fn send(&mut self, request: AppendEntriesRequest<TypeConfig>) -> io::Result<()> {
        if self.in_flight == 0 {
            self.give_up = Instant::now() + self.patience;
        }
        let channel = match &mut self.channel {
            Some(channel) => channel,
            None => {
                let Peer {
                    dialer,
                    member,
                    lane,
                    ..
                } = &*self.peer;
                let opened = dialer.open(member, *lane, self.open_limit).await?;
                self.channel.insert(opened)
            }
        };
        // openraft counts entries, not bytes: 256 entries of 4 MiB would not fit a frame. Each part
        // is a complete request and gets an answer of its own.
        for part in wire::split(request) {
            let frame = wire::say(&part)?;
            within(self.patience, channel.send(frame)).await?;
            self.in_flight += 1;
        }
        Ok(())
    }

    /// The refusal that a member sent before it closed the channel, or `error` if it sent none.
    async fn cause(&mut self, error: io::Error) -> io::Error {
        let Some(channel) = &mut self.channel else {
            return error;
        };
        let said = within(self.patience, channel.next()).await;
        match said.map(|frame| wire::hear::<StreamAppendResult<TypeConfig>>(&frame)) {
            Ok(Err(refusal)) => refusal,
            _ => error,
        }
    }
}
