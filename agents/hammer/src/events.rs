//! Provisioning events: sent in order, with the time they happened, and queued while control is
//! unreachable.

use std::time::Duration;

use agents_kit::{Agent, EventSpool};
use proto_mesh::{MachineEvent, MachineServiceClient};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::net::clock::now_ms;

/// Events that may wait in the channel. A full channel drops the new event. The spool holds only
/// the event that is being sent.
const EVENTS_MAX: usize = 64;
/// Longest message of an event, bytes; longer ones are cut. Control refuses events that are much
/// longer.
const MESSAGE_LEN_MAX: usize = 4096;
/// Time without an event after which "Alive" is sent.
const ALIVE_EVERY: Duration = Duration::from_secs(60);
/// Pause before an event is sent again to a control that did not answer.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Sends events to control in a background task, which ends when this value is dropped.
#[derive(Debug)]
pub struct Events {
    sender: mpsc::Sender<Note>,
    _task: JoinSet<()>,
}

#[derive(Debug)]
enum Note {
    Event(MachineEvent),
    /// Answered when all earlier events are sent.
    Flush(tokio::sync::oneshot::Sender<()>),
}

impl Events {
    /// Starts the sender. It sends "Alive" after each minute without another event.
    #[must_use]
    pub fn spawn(agent: &Agent) -> Self {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        let mut task = JoinSet::new();
        task.spawn(run(agent.client(), receiver));
        Self {
            sender,
            _task: task,
        }
    }

    /// Queues an event without waiting; drops it if 64 are queued.
    pub fn send(&self, event: &str, message: impl Into<String>) {
        tracing::info!("event: {event}");
        if self
            .sender
            .try_send(Note::Event(make(event, message.into())))
            .is_err()
        {
            tracing::warn!(event, "event dropped");
        }
    }

    /// Waits until control has all queued events, at most `limit`.
    pub async fn flush(&self, limit: Duration) {
        let (done, sent) = tokio::sync::oneshot::channel();
        let all = async {
            if self.sender.send(Note::Flush(done)).await.is_ok() {
                // An error means that the sender task ended: no event will be sent any more.
                drop(sent.await);
            }
        };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!("events not sent in time");
        }
    }
}

fn make(event: &str, mut message: String) -> MachineEvent {
    message.truncate(message.floor_char_boundary(MESSAGE_LEN_MAX));
    MachineEvent {
        event: event.to_string(),
        message,
        time_ms: now_ms(),
    }
}

async fn run(client: MachineServiceClient, mut receiver: mpsc::Receiver<Note>) {
    let mut spool = EventSpool::new(EVENTS_MAX);
    loop {
        match tokio::time::timeout(ALIVE_EVERY, receiver.recv()).await {
            Ok(None) => return,
            Ok(Some(Note::Event(event))) => spool.push(event),
            Ok(Some(Note::Flush(done))) => {
                // An error means that `flush` gave up waiting; nothing depends on its answer.
                done.send(()).unwrap_or_default();
            }
            Err(_) => spool.push(make("Alive", String::new())),
        }
        // One at a time and from the front: control records events in the order of arrival, and
        // an event leaves the spool only after control has answered. A retry may deliver it twice;
        // control knows it by machine and time.
        while let Some(event) = spool.front() {
            match client.event(event.clone()).await {
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, "event waits for control");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
                // A final refusal would block all later events if it were retried.
                Err(error) => tracing::warn!(event = event.event, %error, "event refused"),
                Ok(_) => {}
            }
            spool.pop();
        }
    }
}
