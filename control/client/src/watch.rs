//! A watch that goes on by itself after breaks.

use std::collections::BTreeMap;
use std::time::Duration;

use proto_public::metalmesh::admin::v1::{
    WatchChange, WatchChangeType, WatchEvent, WatchServiceAllRequest, WatchServiceOwnRequest,
    WatchServiceProjectRequest, WatchServiceTenantRequest,
};
use tonic::{Code, Status, Streaming};

use crate::session::Client;

/// The pause after the first break; it doubles, and half of it is random.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Whose objects to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchScope {
    /// Everybody's; for administrators.
    All,
    /// Those of the tenant of this login.
    Tenant(String),
    /// Those of the project of this id.
    Project(String),
    /// What is everybody's to see, and the caller's tokens.
    Own,
}

/// A watch. The first messages show what is there; after a break it goes on where it was, and
/// when the server has forgotten that place it lists again and tells the difference.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    scope: WatchScope,
    kinds: Vec<String>,
    id: String,
    stream: Option<Streaming<WatchEvent>>,
    /// Everything up to here was told; 0 while listing.
    revision: u64,
    /// Revisions of the objects that were told, by kind and id.
    known: BTreeMap<(String, String), u64>,
    /// What the present listing has shown so far, when it is not the first.
    again: Option<Vec<WatchChange>>,
    was_listed: bool,
    pause: Duration,
}

impl Watch {
    /// Watches objects of these kinds, or only the one of `id`.
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

    /// The next message with changes, or the one that ends the first listing.
    ///
    /// # Errors
    /// When the caller may not watch (any more), or the first connection cannot be made.
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

    /// Prepares to go on after an error, or gives it back.
    async fn broken(&mut self, status: Status) -> Result<(), Status> {
        self.stream = None;
        match status.code() {
            // The place is forgotten, or other objects are to be seen: list again.
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
            "the watch goes on"
        );
        tokio::time::sleep(self.pause.mul_f64(rand::random_range(0.5..=1.0))).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }

    /// What of a message is new.
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

    /// How a new listing differs from what was told; what is gone comes without its object.
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
    use crate::settings::Settings;

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
        let client = Client::new(&Settings::new("http://127.0.0.1:1")).unwrap();
        let mut watch = Watch::new(&client, WatchScope::All, Vec::new(), None);
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
