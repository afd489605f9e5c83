//! Watchers of everything, each at one node until that breaks or falls silent, and then at the
//! next one, from where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use control_client::Client;
use prost::Message as _;
use proto_public::api::v2::Project;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchEvent, WatchServiceAllRequest};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Streaming};

use crate::told::{Change, Stretch};
use crate::workload::{END, Workload};

/// What a watcher waits for a word; writers never rest as long.
const SILENCE: Duration = Duration::from_secs(3);
/// Before the next node is tried.
const PAUSE: Duration = Duration::from_millis(100);
/// What a watcher waits for the end after the writers have ended.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a watcher has to tell.
#[derive(Debug, Default)]
pub struct Told {
    /// Its history.
    pub stretches: Vec<Stretch>,
    /// How often it went on at another node.
    pub moves: usize,
}

/// One watcher, until it was told of the workload's end.
///
/// # Errors
/// It was told something that it should not be, or never of the end.
pub async fn watch(workload: Arc<Workload>, number: usize) -> Result<Told> {
    let mut watcher = Watcher {
        place: None,
        forgotten: 0,
        listing: BTreeMap::new(),
        ended: false,
        told: Told::default(),
        workload,
    };
    let mut at = number;
    let mut deadline: Option<Instant> = None;
    loop {
        let nodes = watcher.workload.nodes();
        let node = nodes[at % nodes.len()].clone();
        if watcher.follow(&node).await? {
            return Ok(watcher.told);
        }
        at += 1;
        if watcher.workload.is_over() {
            let until = *deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            if Instant::now() > until {
                bail!("watcher {number} was never told of the end");
            }
        }
        sleep(PAUSE).await;
    }
}

struct Watcher {
    workload: Arc<Workload>,
    /// Everything up to this revision was told.
    place: Option<u64>,
    /// Nodes that have forgotten the place, one after the other.
    forgotten: usize,
    /// Registers of a list that goes on.
    listing: BTreeMap<usize, u64>,
    /// Whether the workload's end was among what was told.
    ended: bool,
    told: Told,
}

impl Watcher {
    /// Follows one node until it breaks. True at the workload's end.
    async fn follow(&mut self, node: &Client) -> Result<bool> {
        self.listing.clear();
        let request = WatchServiceAllRequest {
            kinds: ["audit", "project"].map(str::to_owned).to_vec(),
            id: String::new(),
            from_revision: self.place.unwrap_or(0),
        };
        let mut watches = node.watches();
        let mut stream = match timeout(SILENCE, watches.all(request)).await {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => return self.broke(status.code()),
            Err(_) => return Ok(false),
        };
        let mut is_resumed = self.place.is_some();
        loop {
            match next(&mut stream).await {
                Ok(event) => {
                    self.forgotten = 0;
                    self.told.moves += usize::from(std::mem::take(&mut is_resumed));
                    if self.take(event)? {
                        return Ok(true);
                    }
                }
                Err(code) => return self.broke(code),
            }
        }
    }

    /// A node that forgot the place is no reason to list again while another one remembers it.
    fn broke(&mut self, code: Code) -> Result<bool> {
        match code {
            Code::Aborted => {
                self.forgotten += 1;
                if self.forgotten >= self.workload.nodes().len() {
                    self.forgotten = 0;
                    self.place = None;
                }
            }
            Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument => {
                bail!("a watch was refused: {code:?}")
            }
            _ => {}
        }
        Ok(false)
    }

    fn take(&mut self, event: WatchEvent) -> Result<bool> {
        let mut changes = BTreeSet::new();
        for change in &event.changes {
            changes.insert(self.change(change)?);
        }
        if self.place.is_none() {
            for (_, id, value) in &changes {
                if let (Some(key), Some(value)) = (self.workload.register(id), value) {
                    self.listing.insert(key, *value);
                }
            }
            if event.listed {
                self.place = Some(event.revision);
                self.workload.note_list();
                self.told.stretches.push(Stretch {
                    listed_at: event.revision,
                    listed: std::mem::take(&mut self.listing),
                    events: Vec::new(),
                });
            }
            return Ok(self.ended && event.listed);
        }
        if !changes.is_empty() {
            if event.changes.iter().any(|it| it.revision != event.revision) {
                bail!(
                    "a change of another command in the event of {}",
                    event.revision
                );
            }
            let stretch = self
                .told
                .stretches
                .last_mut()
                .context("no list came first")?;
            stretch.events.push((event.revision, changes));
        }
        self.place = Some(event.revision);
        Ok(self.ended)
    }

    fn change(&mut self, change: &WatchChange) -> Result<Change> {
        let mut value = None;
        if let (Some(object), "project") = (&change.object, change.kind.as_str()) {
            let project = Project::decode(object.value.as_slice())?;
            self.ended |= project.name == END;
            if self.workload.register(&change.id).is_some() {
                value = Some(project.description.parse()?);
            }
        }
        Ok((change.kind.clone(), change.id.clone(), value))
    }
}

async fn next(stream: &mut Streaming<WatchEvent>) -> Result<WatchEvent, Code> {
    match timeout(SILENCE, stream.message()).await {
        Ok(Ok(Some(event))) => Ok(event),
        Ok(Ok(None)) | Err(_) => Err(Code::Unavailable),
        Ok(Err(status)) => Err(status.code()),
    }
}
