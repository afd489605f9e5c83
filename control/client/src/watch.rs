//! A watch that resumes after a disconnect.

use std::collections::BTreeMap;
use std::time::Duration;

use proto_public::metalmesh::admin::v1::{
    WatchChange, WatchChangeType, WatchEvent, WatchServiceAllRequest, WatchServiceOwnRequest,
    WatchServiceProjectRequest, WatchServiceTenantRequest,
};
use tonic::{Code, Status, Streaming};

use crate::session::Client;

/// Pause after the first disconnect. It doubles for each further one; half of it is jitter.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// Longest pause between two connections.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The scope of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchScope {
    /// All objects, for administrators.
    All,
    /// Objects of the tenant with this login.
    Tenant(String),
    /// Objects of the project with this id.
    Project(String),
    /// Public objects, and the caller's own tokens.
    Own,
}

/// A watch of objects. The first events list the objects. After a disconnect the watch resumes at the
/// last revision; if the server no longer has that revision, it lists again and returns the
/// difference.
#[derive(Debug)]
pub struct ObjectWatch {
    client: Client,
    scope: WatchScope,
    kinds: Vec<String>,
    id: String,
    stream: Option<Streaming<WatchEvent>>,
    /// Revision up to which changes were returned; 0 while listing.
    revision: u64,
    /// Revisions of the objects that were returned, by kind and id.
    known: BTreeMap<(String, String), u64>,
    /// Objects of a repeated listing so far. `None` means no repeated listing is in progress.
    again: Option<Vec<WatchChange>>,
    /// `true` once the first listing is complete.
    was_listed: bool,
    pause: Duration,
}

impl ObjectWatch {
    /// Creates a watch of the objects of `kinds`, or only of the one with `id`. It connects at the
    /// first call of [`ObjectWatch::next`].
    pub fn new(client: &Client, scope: WatchScope, kinds: Vec<String>, id: Option<String>) -> Self {
        Self {
            client: client.clone(),
            scope,
            kinds,
            id: id.unwrap_or_default(),
            stream: None,
            revision: 0,
            known: BTreeMap::new(),
            again: None,
            was_listed: false,
            pause: PAUSE_FIRST,
        }
    }

    /// Returns the next event with changes, or the one that ends the first listing.
    ///
    /// # Errors
    /// The caller may not watch the scope, or a connection fails before the first listing is complete.
    pub async fn next(&mut self) -> Result<WatchEvent, Status> {
        loop {
            let event = match self.message().await {
                Ok(event) => event,
                Err(status) => {
                    self.broken(status).await?;
                    continue;
                }
            };
            self.pause = PAUSE_FIRST;
            if let Some(event) = self.take(event) {
                return Ok(event);
            }
        }
    }

    async fn message(&mut self) -> Result<WatchEvent, Status> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let opened = self.open().await?;
                self.stream.insert(opened)
            }
        };
        let ended = || Status::unavailable("the stream ended");
        stream.message().await?.ok_or_else(ended)
    }

    async fn open(&self) -> Result<Streaming<WatchEvent>, Status> {
        let mut watches = self.client.watches();
        let (kinds, id, from_revision) = (self.kinds.clone(), self.id.clone(), self.revision);
        let answer = match self.scope.clone() {
            WatchScope::All => {
                let request = WatchServiceAllRequest {
                    kinds,
                    id,
                    from_revision,
                };
                watches.all(request).await
            }
            WatchScope::Tenant(login) => {
                let request = WatchServiceTenantRequest {
                    login,
                    kinds,
                    id,
                    from_revision,
                };
                watches.tenant(request).await
            }
            WatchScope::Project(project) => {
                let request = WatchServiceProjectRequest {
                    project,
                    kinds,
                    id,
                    from_revision,
                };
                watches.project(request).await
            }
            WatchScope::Own => {
                let request = WatchServiceOwnRequest {
                    kinds,
                    id,
                    from_revision,
                };
                watches.own(request).await
            }
        };
        answer.map(tonic::Response::into_inner)
    }

    /// Prepares to resume after an error.
    ///
    /// # Errors
    /// The error itself, if a new connection cannot help.
    async fn broken(&mut self, status: Status) -> Result<(), Status> {
        self.stream = None;
        match status.code() {
            // The server compacted the revision, or the caller's rights changed: only a new listing
            // shows which objects were deleted meanwhile.
            Code::Aborted => self.revision = 0,
            Code::Unavailable
            | Code::Unknown
            | Code::Internal
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
                if self.was_listed => {}
            _ => return Err(status),
        }
        if self.revision == 0 && self.was_listed {
            self.again = Some(Vec::new());
        }
        tracing::warn!(
            error = status.message(),
            revision = self.revision,
            "the watch was disconnected, resuming"
        );
        tokio::time::sleep(self.pause.mul_f64(rand::random_range(0.5..=1.0))).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }

    /// The part of an event that is new to the caller. `None` means nothing is.
    fn take(&mut self, event: WatchEvent) -> Option<WatchEvent> {
        if event.revision > 0 {
            self.revision = event.revision;
        }
        if let Some(again) = &mut self.again {
            again.extend(event.changes);
            if !event.listed {
                return None;
            }
            let shown = self.again.take().unwrap_or_default();
            let changes = self.difference(shown);
            return (!changes.is_empty()).then_some(WatchEvent {
                revision: event.revision,
                changes,
                listed: false,
            });
        }
        for change in &event.changes {
            self.remember(change);
        }
        self.was_listed |= event.listed;
        (event.listed || !event.changes.is_empty()).then_some(event)
    }

    fn remember(&mut self, change: &WatchChange) {
        let key = (change.kind.clone(), change.id.clone());
        if change.r#type() == WatchChangeType::Deleted {
            self.known.remove(&key);
        } else {
            self.known.insert(key, change.revision);
        }
    }

    /// The difference between a repeated listing and the known objects. A deletion has no object.
    fn difference(&mut self, shown: Vec<WatchChange>) -> Vec<WatchChange> {
        let mut gone = std::mem::take(&mut self.known);
        let mut changes = Vec::new();
        for mut change in shown {
            self.remember(&change);
            let r#type = match gone.remove(&(change.kind.clone(), change.id.clone())) {
                None => WatchChangeType::Created,
                Some(revision) if revision == change.revision => continue,
                Some(_) => WatchChangeType::Changed,
            };
            change.r#type = r#type.into();
            changes.push(change);
        }
        changes.extend(gone.into_keys().map(|(kind, id)| WatchChange {
            r#type: WatchChangeType::Deleted.into(),
            kind,
            id,
            revision: self.revision,
            object: None,
        }));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ClientSettings;

    fn change(r#type: WatchChangeType, id: &str, revision: u64) -> WatchChange {
        WatchChange {
            r#type: r#type.into(),
            kind: "machine".into(),
            id: id.into(),
            revision,
            object: None,
        }
    }

    #[tokio::test]
    async fn a_second_listing_tells_the_difference() {
        use WatchChangeType::{Changed, Created, Deleted, Present};
        let client = Client::new(&ClientSettings::new("http://127.0.0.1:1")).unwrap();
        let mut watch = ObjectWatch::new(&client, WatchScope::All, Vec::new(), None);
        let listing = |changes: Vec<WatchChange>, revision| WatchEvent {
            revision,
            changes,
            listed: true,
        };
        let first = ["a", "b", "c"].map(|id| change(Present, id, 1));
        assert!(watch.take(listing(first.to_vec(), 5)).unwrap().listed);
        watch.broken(Status::aborted("compacted")).await.unwrap();
        assert_eq!(watch.revision, 0);
        let second = vec![
            change(Present, "b", 1),
            change(Present, "c", 7),
            change(Present, "d", 8),
        ];
        let told = watch.take(listing(second, 9)).unwrap().changes;
        let expected = [
            change(Changed, "c", 7),
            change(Created, "d", 8),
            change(Deleted, "a", 9),
        ];
        assert_eq!(told, expected);
        assert_eq!(watch.revision, 9);
        // A bookmark is no news, but a place.
        let bookmark = WatchEvent {
            revision: 12,
            ..WatchEvent::default()
        };
        assert_eq!(watch.take(bookmark), None);
        assert_eq!(watch.revision, 12);
        let lost = watch.broken(Status::unauthenticated("revoked")).await;
        assert_eq!(lost.unwrap_err().code(), Code::Unauthenticated);
    }
}
