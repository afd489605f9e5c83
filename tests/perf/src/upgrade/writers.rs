//! Clients that write all the time, and repeat a call that failed at the next node.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::site::call;
use crate::api::http::Client;

const LOGIN: &str = "metal-stack";
const CREATE: &str = "/metalstack.api.v2.ProjectService/Create";
const UPDATE: &str = "/metalstack.api.v2.ProjectService/Update";
const GET: &str = "/metalstack.api.v2.ProjectService/Get";
/// How long a client waits for an answer before it asks the next node.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause before a client asks the next node.
const PAUSE: Duration = Duration::from_millis(5);
/// A write that was not acknowledged for so long has failed.
const GIVE_UP: Duration = Duration::from_secs(30);

/// The tally of all clients in a part of the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) acknowledged: usize,
    /// Attempts that were repeated.
    pub(super) retries: usize,
    /// Calls that failed although they were repeated.
    pub(super) failed: usize,
    /// The longest time without an acknowledged write that ended in this part.
    pub(super) pause: Duration,
}

/// The tally of all clients.
#[derive(Debug, Default)]
struct Tally {
    part: Part,
    last: Option<Instant>,
}

impl Tally {
    fn acknowledge(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            let pause = now.saturating_duration_since(last);
            self.part.pause = self.part.pause.max(pause);
        }
        self.part.acknowledged += 1;
    }
}

type SharedTally = Arc<Mutex<Tally>>;

fn tally(shared: &SharedTally, change: impl FnOnce(&mut Tally)) {
    change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Clients with a project each, whose description they count up.
pub(super) struct Writers {
    token: String,
    tally: SharedTally,
    stop: CancellationToken,
    tasks: JoinSet<Written>,
}

/// The end of a client.
struct Written {
    project: String,
    /// The last number that was acknowledged.
    number: u64,
}

impl Writers {
    /// Creates the projects and starts the clients.
    pub(super) async fn start(nodes: &[SocketAddr], token: &str, count: u16) -> Result<Self> {
        let (shared, stop) = (SharedTally::default(), CancellationToken::new());
        let first = *nodes.first().context("a cluster has nodes")?;
        let mut admin = Client::new(first);
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let new = json!({ "login": LOGIN, "name": format!("written-{number}") });
            let made = admin.json(&call(CREATE, token, &new)?).await?;
            let project = made["project"]["uuid"].as_str().context("no project")?;
            let writer = Writer {
                nodes: nodes.to_vec(),
                at: usize::from(number) % nodes.len(),
                token: token.to_owned(),
                project: project.to_owned(),
                tally: shared.clone(),
            };
            tasks.spawn(writer.run(stop.clone()));
        }
        Ok(Self {
            token: token.to_owned(),
            tally: shared,
            stop,
            tasks,
        })
    }

    /// The tally since this was asked last.
    pub(super) fn take_part(&self) -> Part {
        let mut part = Part::default();
        tally(&self.tally, |all| part = std::mem::take(&mut all.part));
        part
    }

    /// Ends the clients, and counts writes that were acknowledged and that a node does not show.
    pub(super) async fn finish(mut self, nodes: &[SocketAddr]) -> Result<usize> {
        self.stop.cancel();
        let mut lost = 0;
        while let Some(written) = self.tasks.join_next().await {
            let Written { project, number } = written?;
            let get = call(GET, &self.token, &json!({ "project": project }))?;
            for node in nodes {
                let found = Client::new(*node).json(&get).await?;
                let shown = found["project"]["description"].as_str();
                let shown: u64 = shown.and_then(|text| text.parse().ok()).unwrap_or(0);
                lost += usize::from(shown < number);
            }
        }
        Ok(lost)
    }
}

struct Writer {
    nodes: Vec<SocketAddr>,
    /// The node that it asks.
    at: usize,
    token: String,
    project: String,
    tally: SharedTally,
}

impl Writer {
    async fn run(mut self, stop: CancellationToken) -> Written {
        let mut acknowledged = 0;
        let mut client = Client::new(self.nodes[self.at]);
        for number in 1_u64.. {
            if stop.is_cancelled() {
                break;
            }
            if self.write(&mut client, number).await {
                acknowledged = number;
                tally(&self.tally, |all| all.acknowledge(Instant::now()));
            } else {
                tally(&self.tally, |all| all.part.failed += 1);
            }
        }
        Written {
            project: self.project,
            number: acknowledged,
        }
    }

    /// Writes a number, at one node after the other until one acknowledges it. `false` means that
    /// none did. A number may be written twice, which changes nothing.
    async fn write(&mut self, client: &mut Client, number: u64) -> bool {
        let body = json!({
            "project": self.project,
            "updateMeta": { "lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER" },
            "description": number.to_string(),
        });
        let Ok(update) = call(UPDATE, &self.token, &body) else {
            return false;
        };
        let until = Instant::now() + GIVE_UP;
        loop {
            if matches!(timeout(CALL_TIMEOUT, client.call(&update)).await, Ok(Ok(_))) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            tally(&self.tally, |all| all.part.retries += 1);
            self.at = (self.at + 1) % self.nodes.len();
            *client = Client::new(self.nodes[self.at]);
            sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_the_longest_time_between_two_acknowledgements() {
        let start = Instant::now();
        let mut all = Tally::default();
        for ms in [0, 10, 500, 510] {
            all.acknowledge(start + Duration::from_millis(ms));
        }
        let part = std::mem::take(&mut all.part);
        assert_eq!(part.pause, Duration::from_millis(490));
        assert_eq!(part.acknowledged, 4);
        // A pause that began in one part counts where it ends.
        all.acknowledge(start + Duration::from_millis(710));
        assert_eq!(all.part.pause, Duration::from_millis(200));
    }
}
