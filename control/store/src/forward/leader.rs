//! The leader's side of the forward lane.

use std::future::Future;
use std::io;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};

use super::FORWARDS_MAX;
use super::messages::{ForwardedAnswer, ForwardedRequest};
use crate::channel::Channel;
use crate::wire;

/// A request on the wire; its number is unique on its channel.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NumberedRequest {
    pub(super) number: u64,
    pub(super) what: ForwardedRequest,
}

/// The answer to the request of the same number.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NumberedAnswer {
    pub(super) number: u64,
    pub(super) answer: ForwardedAnswer,
}

/// Answers the requests of one follower until it closes the channel. Answers are sent as the work
/// is done, in any order.
///
/// # Errors
/// When the channel breaks or a request cannot be decoded.
pub(crate) async fn serve<F: Future<Output = ForwardedAnswer>>(
    mut channel: Channel,
    mut carry_out: impl FnMut(ForwardedRequest) -> F,
) -> io::Result<()> {
    let mut at_work = FuturesUnordered::new();
    loop {
        tokio::select! {
            // Answers go first: a follower that only sends would otherwise get none, and it stops
            // sending only when too many of its requests are unanswered.
            biased;
            Some(answer) = at_work.next(), if !at_work.is_empty() => {
                channel.send(wire::say::<NumberedAnswer>(&answer)?).await?;
            }
            // The leader keeps its own bound: it does not rely on the follower's. Beyond it the
            // requests stay in the channel, which is backpressure.
            frame = channel.incoming.next(), if at_work.len() < FORWARDS_MAX => {
                let Some(frame) = frame else {
                    return Ok(());
                };
                let NumberedRequest { number, what } = wire::hear(&frame?)?;
                let work = carry_out(what);
                at_work.push(async move {
                    let answer = work.await;
                    NumberedAnswer { number, answer }
                });
            }
        }
    }
}
