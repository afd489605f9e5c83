//! Watches over every protocol that the door knows, on real sockets of the real program.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use control_client::{Client, ClientSettings};
use proto_public::admin::v2::{
    PartitionServiceCreateRequest, PartitionServiceDeleteRequest, PartitionServiceUpdateRequest,
    TokenServiceCreateRequest, TokenServiceRevokeRequest,
};
use proto_public::api::v2::{self as api, AdminRole, Partition};
use proto_public::metalmesh::admin::v1::{WatchEvent, WatchServiceAllRequest};
use tokio::runtime::Runtime;
use tonic::{Code, Status, Streaming};

use crate::daemon::{Daemon, PATIENCE};
use crate::wire::{Change, End, Stream, Told, Wire};

/// A watch over gRPC, as the typed client opens it.
struct Grpc {
    runtime: Runtime,
    answer: Result<Streaming<WatchEvent>, Status>,
}

impl Grpc {
    fn open(api: &str, token: &str, from: u64) -> Self {
        let runtime = Runtime::new().unwrap();
        let answer = runtime.block_on(async {
            let client = Client::new(&ClientSettings::new(api).with_token(token)).unwrap();
            let request = WatchServiceAllRequest {
                kinds: vec!["partition".to_owned()],
                id: String::new(),
                from_revision: from,
            };
            let answer = client.watches().all(request).await;
            answer.map(tonic::Response::into_inner)
        });
        Self { runtime, answer }
    }

    fn next(&mut self) -> Result<Told, End> {
        let stream = self.answer.as_mut().map_err(|status| end(status))?;
        let next = async { tokio::time::timeout(PATIENCE, stream.message()).await };
        match self.runtime.block_on(next).expect("nothing comes") {
            Ok(event) => Ok(event.expect("an end without a status").into()),
            Err(status) => Err(end(&status)),
        }
    }
}

fn end(status: &Status) -> End {
    let code = match status.code() {
        Code::Aborted => "aborted",
        Code::Unavailable => "unavailable",
        Code::Unauthenticated => "unauthenticated",
        other => panic!("{other:?}: {status}"),
    };
    End {
        code: code.to_owned(),
        message: status.message().to_owned(),
    }
}

/// A watch over some protocol.
enum Watch {
    Raw(Stream),
    Grpc(Box<Grpc>),
}

impl Watch {
    /// Without a wire over gRPC.
    fn open(wire: Option<Wire>, api: &str, token: &str, from: u64) -> Self {
        match wire {
            Some(wire) => {
                let address = api.trim_start_matches("http://");
                Self::Raw(Stream::open(wire, address, token, from))
            }
            None => Self::Grpc(Box::new(Grpc::open(api, token, from))),
        }
    }

    fn next(&mut self) -> Result<Told, End> {
        match self {
            Self::Raw(stream) => stream.next(),
            Self::Grpc(grpc) => grpc.next(),
        }
    }

    /// The next message that is no bookmark.
    fn news(&mut self) -> Told {
        loop {
            let told = self.next().unwrap();
            if told.listed || !told.changes.is_empty() {
                return told;
            }
        }
    }

    /// How it ends; only bookmarks may come before.
    fn end(&mut self) -> End {
        loop {
            match self.next() {
                Ok(told) => assert_eq!(told.changes, [], "news after the end"),
                Err(end) => return end,
            }
        }
    }
}

fn every_wire() -> impl Iterator<Item = Option<Wire>> {
    Wire::EVERY.into_iter().map(Some).chain([None])
}

/// Creates a token that may read all; how it is revoked, and itself.
async fn token(admin: &Client) -> (TokenServiceRevokeRequest, String) {
    let inner = api::TokenServiceCreateRequest {
        admin_role: Some(AdminRole::Viewer.into()),
        ..Default::default()
    };
    let request = TokenServiceCreateRequest {
        user: None,
        token_create_request: Some(inner),
    };
    let made = admin.admin_tokens().create(request).await.unwrap();
    let made = made.into_inner();
    let token = made.token.unwrap();
    let revoke = TokenServiceRevokeRequest {
        uuid: token.uuid,
        user: token.user,
    };
    (revoke, made.secret)
}

fn partition(id: &str, description: &str) -> Option<Partition> {
    Some(Partition {
        id: id.to_owned(),
        description: description.to_owned(),
        ..Default::default()
    })
}

async fn create(admin: &Client, id: &str) {
    let request = PartitionServiceCreateRequest {
        partition: partition(id, ""),
    };
    admin.admin_partitions().create(request).await.unwrap();
}

async fn change_and_delete(admin: &Client, id: &str) {
    let request = PartitionServiceUpdateRequest {
        id: id.to_owned(),
        description: Some("changed".to_owned()),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        ..Default::default()
    };
    admin.admin_partitions().update(request).await.unwrap();
    let request = PartitionServiceDeleteRequest { id: id.to_owned() };
    admin.admin_partitions().delete(request).await.unwrap();
}

/// What a watcher has seen so far.
#[derive(Debug)]
enum Seen {
    Listed,
    /// All changes, and a bookmark behind them; a second watch from the first change saw the
    /// rest.
    All,
}

/// Watches through all of the scenario, and says how it ended.
fn watcher(wire: Option<Wire>, api: String, token: String, seen: &Sender<Seen>) -> End {
    let mut watch = Watch::open(wire, &api, &token, 0);
    let listed = watch.news();
    assert!(listed.listed && listed.revision > 0, "{wire:?}: {listed:?}");
    let [there] = listed.changes.as_slice() else {
        panic!("{wire:?}: {listed:?}");
    };
    assert_eq!(
        (there.what.as_str(), there.kind.as_str(), there.id.as_str()),
        ("PRESENT", "partition", "there"),
        "{wire:?}"
    );
    seen.send(Seen::Listed).unwrap();
    let mut told = vec![listed];
    for what in ["CREATED", "CHANGED", "DELETED"] {
        let next = watch.news();
        let expected = Change {
            what: what.to_owned(),
            kind: "partition".to_owned(),
            id: "new".to_owned(),
            revision: next.revision,
        };
        assert_eq!(next.changes, [expected], "{wire:?}");
        assert!(next.revision > told.last().unwrap().revision, "{wire:?}");
        told.push(next);
    }
    let bookmark = watch.next().unwrap();
    let last = told.last().unwrap().revision;
    assert_eq!(bookmark.changes, [], "{wire:?}");
    assert!(
        !bookmark.listed && bookmark.revision >= last,
        "{wire:?}: {bookmark:?}"
    );
    // From the first change on: the others again, each once.
    let mut again = Watch::open(wire, &api, &token, told[1].revision);
    assert_eq!([again.news(), again.news()], told[2..], "{wire:?}");
    seen.send(Seen::All).unwrap();
    assert_eq!(again.end(), watch.end(), "{wire:?}");
    Watch::open(wire, &api, &token, 0).end()
}

fn wait(all: &[Receiver<Seen>]) {
    for one in all {
        one.recv_timeout(PATIENCE).expect("a watcher stopped");
    }
}

#[test]
fn every_protocol_tells_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let runtime = Runtime::new().unwrap();
    let admin = runtime.block_on(async { daemon.client() });
    runtime.block_on(create(&admin, "there"));
    let (mut watchers, mut news, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
    for wire in every_wire() {
        let (revoke, token) = runtime.block_on(token(&admin));
        let (send, receive) = channel();
        let api = daemon.api.clone();
        let watching: JoinHandle<End> =
            std::thread::spawn(move || watcher(wire, api, token, &send));
        watchers.push((wire, watching));
        news.push(receive);
        tokens.push(revoke);
    }
    wait(&news);
    runtime.block_on(async {
        create(&admin, "new").await;
        change_and_delete(&admin, "new").await;
    });
    wait(&news);
    for revoke in tokens {
        let mut tokens = admin.admin_tokens();
        runtime.block_on(tokens.revoke(revoke)).unwrap();
    }
    for (wire, watching) in watchers {
        let end = watching.join().unwrap();
        assert_eq!(end.code, "unauthenticated", "{wire:?}: {end:?}");
        assert!(end.message.starts_with("MM-1103"), "{wire:?}: {end:?}");
    }
}

#[test]
fn every_protocol_says_what_is_too_long_ago_and_when_the_node_stops() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let token = daemon.admin_token();
    assert!(daemon.terminate().success());
    // The history of changes is the process's: it begins with it.
    let daemon = Daemon::start(dir.path());
    let mut open = Vec::new();
    for wire in every_wire() {
        for from in [1, 1 << 40] {
            let end = Watch::open(wire, &daemon.api, &token, from).end();
            assert_eq!(end.code, "aborted", "{wire:?}: {end:?}");
            assert!(end.message.starts_with("MM-1701"), "{wire:?}: {end:?}");
            assert!(end.message.contains("list again"), "{wire:?}: {end:?}");
        }
        let mut watch = Watch::open(wire, &daemon.api, &token, 0);
        assert!(watch.news().listed);
        open.push((wire, watch));
    }
    assert!(daemon.terminate().success());
    for (wire, mut watch) in open {
        let end = watch.end();
        assert_eq!(end.code, "unavailable", "{wire:?}: {end:?}");
        assert!(end.message.contains("go on from"), "{wire:?}: {end:?}");
    }
}
