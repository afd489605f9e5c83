//! The release of the agent that control names reaches the real agent, which says what becomes of it.
//! Printed as skipped without the rights for a network namespace.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use agents_firewall::run::run;
use control_state::{FirewallStatus, FirewallUpdate, RemoveFirewallRelease, SetFirewallRelease};
use proto_types::Digest;
use tokio_util::sync::CancellationToken;

use crate::firewall::Site;
use crate::firewall_agent::{in_namespace, install_agent};
use crate::fixture::PATIENCE;

/// The public half of a key that signs nothing here.
const KEY: &str = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
/// The version that all programs of this workspace have.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

async fn name_release(site: &Site, version: &str) {
    let op = SetFirewallRelease {
        version: version.to_owned(),
        // Not reached: the agent fetches from no local address that its own file does not name.
        url: "https://10.9.9.9/metalmesh-firewall.release".to_owned(),
        head_digest: Digest::sha256([1; 32]),
    };
    site.control.propose(op).await.unwrap();
}

async fn await_update(site: &Site, what: &str, is_it: impl Fn(&FirewallUpdate) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = site.control.store.read_local(|tables| {
            let status = tables.get::<FirewallStatus>(&site.machine)?;
            status.update.clone()
        });
        let found = found.unwrap();
        if found.as_ref().is_some_and(&is_it) {
            return;
        }
        assert!(Instant::now() < until, "{what}: {found:?}");
        tokio::task::yield_now().await;
    }
}

async fn whole_way() {
    let site = Site::start().await;
    site.allocate_firewall().await;
    let folder = tempfile::tempdir().unwrap();
    let files = install_agent(&site, folder.path()).await;
    let text = fs::read_to_string(&files.config).unwrap();
    let enabled = "firewall: {source: metal, selfUpdate: {enabled: true, spreadSeconds: 0}}";
    fs::write(
        &files.config,
        text.replace("firewall: {source: metal}", enabled),
    )
    .unwrap();
    let stop = CancellationToken::new();
    let work = async {
        // Nobody is trusted yet, whatever control says.
        name_release(&site, "99.0.0").await;
        await_update(&site, "no key", |update| {
            let error = update.error.as_deref().unwrap_or_default();
            update.phase == "off" && error.starts_with("keys: no key of releases is trusted")
        })
        .await;
        let keys = folder.path().join("release-keys");
        fs::write(&keys, format!("{KEY}\n")).unwrap();
        fs::set_permissions(&keys, Permissions::from_mode(0o644)).unwrap();
        await_update(&site, "another version", |update| {
            let error = update.error.as_deref().unwrap_or_default();
            update.phase == "failed"
                && update.wanted.as_deref() == Some("99.0.0")
                && error.starts_with("controllerURL: its address is local")
        })
        .await;
        // Another release of the version that runs, perhaps: the installed program does not tell.
        name_release(&site, OWN_VERSION).await;
        await_update(&site, "the version that runs", |update| {
            update.phase == "failed" && update.wanted.as_deref() == Some(OWN_VERSION)
        })
        .await;
        site.control
            .propose(RemoveFirewallRelease {})
            .await
            .unwrap();
        await_update(&site, "no version", |update| {
            update.phase == "nothing_wanted" && update.wanted.is_none()
        })
        .await;
        stop.cancel();
    };
    let (ran, ()) = tokio::join!(run(files, stop.clone()), work);
    ran.unwrap();
    site.control.stop().await;
}

#[test]
fn the_agent_follows_the_release_that_control_names() {
    in_namespace(whole_way);
}
