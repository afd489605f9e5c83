//! Self-update: the real program replaces itself by what control names.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents_kit::state_dir::StoredSession;
use agents_kit::{Credential, Key, StateDir};
use proto_identity::CertificateRequest;
use proto_identity::profile::{Authority, Purpose};
use proto_identity::tls::{self, NodeCertificate};
use proto_link::{ALPN, MeshServer, MeshServerConfig, NeverRevoked, Router, now_ms};
use proto_mesh::UpdateServiceServer;
use proto_release::ReleaseSigner;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::replacing::{
    AUTHORITY, ReleaseServer, Story, Supervised, Updates, install_keys, section,
};
use crate::world::{World, on_thread, skipped};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_metalmesh-pixie");
const DOMAIN: &str = "mesh.test";
/// Validity of certificates.
const HOUR: Duration = Duration::from_secs(3600);

/// Serves control's part in self-update, and nothing else. Returns the session of a pixie that has joined.
fn serve(updates: &Updates, tasks: &mut JoinSet<()>) -> StoredSession {
    let root = Authority::root(DOMAIN, now_ms()).unwrap();
    let issue = |purpose, id: &str| {
        let by = root.intermediate(purpose, now_ms()).unwrap();
        let key = Key::generate().unwrap();
        let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
        let id = format!("spiffe://{DOMAIN}/{id}").parse().unwrap();
        let leaf = by.issue(&id, &request, now_ms(), HOUR).unwrap();
        Credential {
            key,
            chain: vec![leaf, by.certificate().clone()],
            roots: vec![root.certificate().clone()],
        }
    };
    let node = issue(Purpose::Nodes, "node/n1");
    let own = NodeCertificate::new(&node).unwrap();
    let server = MeshServer::bind(MeshServerConfig {
        bind: "127.0.0.1:0".parse().unwrap(),
        tls: tls::server_config(&node.roots, own, ALPN).unwrap(),
        trust_domain: DOMAIN.into(),
        router: Router::new().add(UpdateServiceServer::new(updates.clone())),
        revocations: Arc::new(NeverRevoked::default()),
    })
    .unwrap();
    let control = vec![server.local_addr().unwrap().to_string()];
    tasks.spawn(server.run(CancellationToken::new()));
    StoredSession {
        credential: issue(Purpose::Agents, "partition/p1/pixie/pixie1"),
        control,
        ticket_id: String::new(),
    }
}

/// Replaces the program of a pixie whose configuration is in `dir`.
async fn replace(dir: &Path) {
    let published = dir.join("published");
    fs::create_dir(&published).unwrap();
    let signer = ReleaseSigner::generate().unwrap();
    let server = ReleaseServer::start(&published).await;
    fs::copy(published.join(AUTHORITY), dir.join(AUTHORITY)).unwrap();
    install_keys(dir, &format!("{}\n", signer.public()));
    let (updates, mut tasks) = (Updates::new(), JoinSet::new());
    let session = serve(&updates, &mut tasks);
    let state = StateDir::open(&dir.join("state")).unwrap();
    state.store(&session).unwrap();
    let agent = Supervised::start(PROGRAM, &dir.join("pixie.toml"), state.path());
    let story = Story {
        name: "metalmesh-pixie",
        program: PROGRAM,
        state: state.path(),
        agent: &agent,
        updates: &updates,
        server: &server,
        signer: &signer,
    };
    story.replaces_itself().await;
}

#[test]
fn the_boot_server_replaces_itself_by_a_signed_release() {
    if skipped() {
        return;
    }
    let world = World::new();
    let dir = world.dir.path().to_owned();
    let config = format!("{}\n{}", world.server_text(), section());
    fs::write(dir.join("pixie.toml"), config).unwrap();
    let thread = on_thread(&world.pixie_ns, move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(replace(&dir));
    });
    thread.join().unwrap();
}
