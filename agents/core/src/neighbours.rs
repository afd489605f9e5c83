//! Runs one LLDP speaker per front-panel port, also for ports that appear later.

use std::collections::BTreeMap;
use std::sync::Arc;

use agents_nos::lldp::{self, Neighbours, Speaker};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::reconcile::Outcome;

/// Ports with a speaker at most; further ones get none. No switch has as many.
const PORTS_MAX: usize = 1024;

/// A port with a speaker.
struct SpeakingPort {
    came_up: Arc<Notify>,
    up: bool,
}

pub(crate) async fn run(
    switch: String,
    config: Arc<Config>,
    mut observed: watch::Receiver<Outcome>,
    neighbours: Neighbours,
    stop: CancellationToken,
) {
    let mut tasks = JoinSet::new();
    let mut ports: BTreeMap<String, SpeakingPort> = BTreeMap::new();
    loop {
        let state = observed.borrow_and_update().state.clone();
        for (name, seen) in &state.links {
            let name: &str = name.as_ref();
            if !config.is_front(name) {
                continue;
            }
            if !ports.contains_key(name) && ports.len() < PORTS_MAX {
                let came_up = Arc::new(Notify::new());
                let speaker = Speaker {
                    switch: switch.clone(),
                    description: concat!("metalmesh-core ", env!("CARGO_PKG_VERSION")).to_owned(),
                    port: name.to_owned(),
                };
                let speak = lldp::run(
                    speaker,
                    neighbours.clone(),
                    Arc::clone(&came_up),
                    stop.clone(),
                );
                tasks.spawn(speak);
                ports.insert(
                    name.to_owned(),
                    SpeakingPort {
                        came_up,
                        up: seen.oper_up,
                    },
                );
            } else if let Some(port) = ports.get_mut(name) {
                if seen.oper_up && !port.up {
                    port.came_up.notify_one();
                }
                port.up = seen.oper_up;
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            changed = observed.changed() => if changed.is_err() { break },
        }
    }
    while tasks.join_next().await.is_some() {}
}
