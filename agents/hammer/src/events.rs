//! Provisioning events: sent in order, with the time they happened, and queued while control is
//! unreachable.

use std::time::Duration;

use agents_kit::{Agent, EventSpool};
use proto_mesh::{LinkStatus, MachineEvent, MachineServiceClient};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::net::clock::now_ms;

/// Events that may wait in the spool; a full one drops its oldest. Also those that may wait in the
/// channel during one attempt to send; a full channel drops the new event.
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
        let client: MachineServiceClient = agent.client();
        let deliver = move |event| {
            let client = client.clone();
            async move { client.event(event).await.map(drop) }
        };
        task.spawn(run(deliver, receiver));
        Self {
            sender,
            _task: task,
        }
    }

    /// Queues an event without waiting. During an outage of control the newest 64 are kept.
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

async fn run<D, F>(deliver: D, mut receiver: mpsc::Receiver<Note>)
where
    D: Fn(MachineEvent) -> F,
    F: Future<Output = Result<(), LinkStatus>>,
{
    let mut spool = EventSpool::new(EVENTS_MAX);
    let mut flushes = Vec::new();
    loop {
        let mut note = match tokio::time::timeout(ALIVE_EVERY, receiver.recv()).await {
            Ok(None) => return,
            Ok(note) => note,
            Err(_) => Some(Note::Event(make("Alive", String::new()))),
        };
        // One at a time and from the front: control records events in the order of arrival, and
        // an event leaves the spool only after control has answered. A retry may deliver it twice;
        // control knows it by machine and time.
        loop {
            // Before each attempt: the channel drops the newest events when it is full, and in an
            // outage these say more than the oldest.
            while let Some(queued) = note.take().or_else(|| receiver.try_recv().ok()) {
                match queued {
                    Note::Event(event) => spool.push(event),
                    Note::Flush(done) => flushes.push(done),
                }
            }
            let Some(event) = spool.front() else { break };
            match deliver(event.clone()).await {
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, "event waits for control");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
                // A final refusal would block all later events if it were retried.
                Err(error) => tracing::warn!(event = event.event, %error, "event refused"),
                Ok(()) => {}
            }
            spool.pop();
        }
        for done in flushes.drain(..) {
            // An error means that `flush` gave up waiting; nothing depends on its answer.
            done.send(()).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use parking_lot::Mutex;

    use super::*;

    /// Time is virtual: the pauses let the sender run.
    #[tokio::test(start_paused = true)]
    async fn an_outage_costs_the_oldest_events() {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        let (is_up, got) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (up, log): (_, Arc<Mutex<Vec<String>>>) = (Arc::clone(&is_up), Arc::clone(&got));
        let mut task = JoinSet::new();
        let deliver = move |event: MachineEvent| {
            let answer = if up.load(Ordering::Relaxed) {
                log.lock().push(event.event);
                Ok(())
            } else {
                Err(LinkStatus::unavailable("away"))
            };
            std::future::ready(answer)
        };
        task.spawn(run(deliver, receiver));
        let events = Events {
            sender,
            _task: task,
        };
        for ten in 0..20 {
            for n in 0..10 {
                events.send(&(ten * 10 + n).to_string(), "");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        is_up.store(true, Ordering::Relaxed);
        events.flush(Duration::from_secs(60)).await;
        let newest: Vec<String> = (136..200).map(|n: usize| n.to_string()).collect();
        assert_eq!(*got.lock(), newest);
    }
}
