//! Self-update: the real program replaces itself by what control names, on a switch that stays as it is.

use std::fs;
use std::path::Path;

use proto_link::Router;
use proto_mesh::UpdateServiceServer;
use proto_release::ReleaseSigner;

use crate::fixture::{Control, Site, desired, joined};
use crate::linux::Namespace;
use crate::replacing::{
    AUTHORITY, ReleaseServer, Story, Supervised, Updates, install_keys, section,
};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_metalmesh-core");
/// The switch of [`Namespace`].
const CONFIG: &str = "rack = \"rack-1\"\nmanagement_ip = \"10.90.0.11\"\nvtep = \"10.91.0.11\"\n\
     uplinks = [\"up1\"]\n";

/// Writes the configuration of an agent that trusts a key, and the authority of the server of releases.
fn install(dir: &Path, published: &Path, signer: &ReleaseSigner) {
    fs::write(dir.join("core.toml"), format!("{CONFIG}{}", section())).unwrap();
    install_keys(dir, &format!("{}\n", signer.public()));
    fs::copy(published.join(AUTHORITY), dir.join(AUTHORITY)).unwrap();
}

#[test]
fn the_agent_of_a_switch_replaces_itself_by_a_signed_release() {
    let Some(leaf) = Namespace::new("update") else {
        return;
    };
    leaf.inside(async || {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        let published = dir.join("published");
        fs::create_dir(&published).unwrap();
        let signer = ReleaseSigner::generate().unwrap();
        let server = ReleaseServer::start(&published).await;
        install(dir, &published, &signer);
        let (site, control, updates) = (Site::new(), Control::default(), Updates::new());
        control.desired.send_replace(desired(1, 27));
        let others = Router::new().add(UpdateServiceServer::new(updates.clone()));
        let (address, _tasks) = site.serve_with(&control, others);
        let state = joined(&home, &site, address);
        let agent = Supervised::start(PROGRAM, &dir.join("core.toml"), state.path());
        let story = Story {
            name: "metalmesh-core",
            program: PROGRAM,
            state: state.path(),
            agent: &agent,
            updates: &updates,
            server: &server,
            signer: &signer,
        };
        story.replaces_itself().await;
        leaf.until("swp1", "master mmb27").await;
    });
}
