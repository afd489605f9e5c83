//! Provisioning events: in order, with the time they happened, also when control is away.

use std::time::Duration;

use agents_kit::{Agent, EventSpool};
use proto_mesh::{MachineEvent, MachineServiceClient};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::net::clock::now_ms;

const EVENTS_MAX: usize = 64;
/// Longest message of an event, bytes; control refuses events that are much longer.
const MESSAGE_LEN_MAX: usize = 4096;
/// Between two signs of life.
const ALIVE_EVERY: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Sends events in the background.
#[derive(Debug)]
pub struct Events {
    sender: mpsc::Sender<Note>,
    _task: JoinSet<()>,
}

#[derive(Debug)]
enum Note {
    Event(MachineEvent),
    /// Answered when everything before it is sent.
    Flush(tokio::sync::oneshot::Sender<()>),
}

impl Events {
    /// Starts sending; "Alive" follows each minute from the first event on.
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

    /// Notes an event. It is dropped when 64 wait already.
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

    /// Waits until all events are with control, at most `limit`.
    pub async fn flush(&self, limit: Duration) {
        let (done, sent) = tokio::sync::oneshot::channel();
        let all = async {
            if self.sender.send(Note::Flush(done)).await.is_ok() {
                // An error says that the task is gone: nothing is left to wait for.
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
                // Nobody waits any more: no harm.
                done.send(()).unwrap_or_default();
            }
            Err(_) => spool.push(make("Alive", String::new())),
        }
        while let Some(event) = spool.front() {
            match client.event(event.clone()).await {
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, "event waits for control");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
                Err(error) => tracing::warn!(event = event.event, %error, "event refused"),
                Ok(_) => {}
            }
            spool.pop();
        }
    }
}
