//! Starts, crashes, stops, and the ways to start it wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::daemon::{Daemon, program};

async fn create_tenant(daemon: &Daemon, name: &str) -> Result<(), tonic::Status> {
    let request = admin::TenantServiceCreateRequest {
        name: name.to_owned(),
        ..Default::default()
    };
    daemon
        .client()
        .admin_tenants()
        .create(request)
        .await
        .map(drop)
}

async fn tenants(daemon: &Daemon) -> Vec<String> {
    let request = admin::TenantServiceListRequest { query: None };
    let answer = daemon
        .client()
        .admin_tenants()
        .list(request)
        .await
        .unwrap()
        .into_inner();
    answer
        .tenants
        .into_iter()
        .map(|tenant| tenant.login)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    for number in 0..20 {
        create_tenant(&daemon, &format!("tenant-{number}"))
            .await
            .unwrap();
    }
    let token = daemon.admin_token();
    daemon.kill();
    let daemon = Daemon::start(dir.path());
    // The first start made the token; the second uses it.
    assert_eq!(daemon.admin_token(), token);
    let known = tenants(&daemon).await;
    for number in 0..20 {
        assert!(known.contains(&format!("tenant-{number}")), "{known:?}");
    }
    let refused = create_tenant(&daemon, "tenant-3").await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(dir.path());
    assert_eq!(tenants(&daemon).await, known);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_stays_dead_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    create_tenant(&daemon, "acme").await.unwrap();
    let inner = api::TokenServiceCreateRequest {
        admin_role: Some(api::AdminRole::Viewer.into()),
        ..Default::default()
    };
    let request = admin::TokenServiceCreateRequest {
        user: Some("acme".into()),
        token_create_request: Some(inner),
    };
    let made = daemon
        .client()
        .admin_tokens()
        .create(request)
        .await
        .unwrap()
        .into_inner();
    let as_viewer = |daemon: &Daemon| {
        let settings = control_client::ClientSettings::new(&daemon.api).with_token(&made.secret);
        control_client::Client::new(&settings).unwrap()
    };
    let list = admin::TenantServiceListRequest { query: None };
    as_viewer(&daemon)
        .admin_tenants()
        .list(list.clone())
        .await
        .unwrap();
    let revoke = admin::TokenServiceRevokeRequest {
        uuid: made.token.clone().unwrap().uuid,
        user: "acme".into(),
    };
    daemon.client().admin_tokens().revoke(revoke).await.unwrap();
    daemon.kill();
    let daemon = Daemon::start(dir.path());
    let refused = as_viewer(&daemon)
        .admin_tenants()
        .list(list)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_is_quick_and_keeps_its_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    println!("ready after {:?}", daemon.started_in);
    let mode = |name: &str| {
        fs::metadata(dir.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("config.yaml"), 0o600);
    assert_eq!(mode("data"), 0o700);
    assert_eq!(mode("data/seal.key"), 0o600);
    // Nothing of the token is in the data: the state has its id alone.
    let token = daemon.admin_token();
    let signature = token.rsplit('.').next().unwrap().to_owned();
    assert!(daemon.terminate().success());
    let grep = Command::new("grep")
        .args(["-r", "-l", "-F", &signature])
        .arg(dir.path().join("data"))
        .output()
        .unwrap();
    assert!(grep.stdout.is_empty(), "the data holds a token: {grep:?}");
}

fn failure(arguments: &[&str]) -> String {
    let output = Command::new(program()).args(arguments).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn mistakes_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    fs::write(&file, "data_dir = '/x'\n[api]\nlisten = 'nowhere'\n").unwrap();
    let file = file.to_str().unwrap();
    let text = failure(&["check", "--config", file]);
    assert!(
        text.contains("bad.toml") && text.contains("listen"),
        "{text}"
    );
    let text = failure(&[]);
    assert!(
        text.contains("data_dir") && text.contains("--dev"),
        "{text}"
    );
    let text = failure(&["init", "--data-dir", dir.path().join("d").to_str().unwrap()]);
    assert!(text.contains("--token-file"), "{text}");
    let text = failure(&["--dev", "--api-listen", "192.0.2.1:1"]);
    assert!(text.contains("api.listen"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_has_one_master_and_tokens_can_be_had_again() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let token = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let first = token("first");
    let made = Command::new(program())
        .args(["init", "--data-dir", data, "--token-file", &first])
        .status()
        .unwrap();
    assert!(made.success());
    assert_eq!(
        fs::metadata(&first).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let again = failure(&["init", "--data-dir", data, "--token-file", &token("second")]);
    assert!(again.contains("metalmeshd token"), "{again}");
    let daemon = Daemon::start(dir.path());
    let busy = failure(&["token", "--data-dir", data, "--token-file", &token("third")]);
    assert!(busy.contains("in use"), "{busy}");
    assert!(daemon.terminate().success());
    let lost = token("fourth");
    let made = Command::new(program())
        .args(["token", "--data-dir", data, "--token-file", &lost])
        .status()
        .unwrap();
    assert!(made.success());
    let daemon = Daemon::start(dir.path());
    for file in [first, lost] {
        let token = fs::read_to_string(file).unwrap();
        let settings = control_client::ClientSettings::new(&daemon.api).with_token(token.trim());
        let client = control_client::Client::new(&settings).unwrap();
        let request = admin::TenantServiceListRequest { query: None };
        client.admin_tenants().list(request).await.unwrap();
    }
}

#[test]
fn a_directory_that_lost_a_key_or_its_owner_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let path = data.to_str().unwrap();
    let token = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let made = Command::new(program())
        .args(["init", "--data-dir", path, "--token-file", &token("first")])
        .status()
        .unwrap();
    assert!(made.success());
    for (file, named) in [("seal.key", "mesh.sealing_key"), ("NODE", "it is missing")] {
        let aside = dir.path().join(file);
        fs::rename(data.join(file), &aside).unwrap();
        let error = failure(&[
            "token",
            "--data-dir",
            path,
            "--token-file",
            &token("second"),
        ]);
        assert!(error.contains(named) && error.contains(file), "{error}");
        assert!(!data.join(file).exists(), "a new {file} was made");
        fs::rename(&aside, data.join(file)).unwrap();
    }
    let made = Command::new(program())
        .args(["token", "--data-dir", path, "--token-file", &token("third")])
        .status()
        .unwrap();
    assert!(made.success(), "it starts again once both are back");
}
