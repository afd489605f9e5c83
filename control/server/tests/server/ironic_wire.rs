//! Ironic's API on the wire, without any client: versions, refusals before a token, bounds, and policy
//! files at the start.

use std::fs;
use std::process::Command;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::daemon::{Daemon, program};
use crate::ironic::daemon;

const VERSION: &str = "X-OpenStack-Ironic-API-Version";
const NEWEST: &str = "X-OpenStack-Ironic-API-Maximum-Version";

/// Asks Ironic's API.
struct Wire {
    http: Client,
    url: String,
    token: String,
}

impl Wire {
    fn of(daemon: &Daemon) -> Self {
        // Another test may have chosen already.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        Self {
            http: Client::new(),
            url: daemon.ironic.clone().unwrap(),
            token: daemon.admin_token(),
        }
    }

    async fn anonymous(&self, verb: Method, path: &str, version: &str) -> Response {
        let request = self.http.request(verb, format!("{}{path}", self.url));
        request.header(VERSION, version).send().await.unwrap()
    }

    async fn ask(&self, verb: Method, path: &str, body: &Value) -> Response {
        let request = self.http.request(verb, format!("{}{path}", self.url));
        let request = request
            .header(VERSION, "1.115")
            .header("X-Auth-Token", &self.token)
            .header("Content-Type", "application/json");
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        request.body(body).send().await.unwrap()
    }

    /// Calls metalmesh's own API in JSON, as the administrator.
    async fn call(&self, daemon: &Daemon, method: &str, body: &Value) -> Value {
        let url = format!("{}/metalstack.{method}", daemon.api);
        let request = self.http.post(url).bearer_auth(&self.token);
        let request = request.header("Content-Type", "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{method}");
        content(answer).await
    }

    /// A project of this name in a tenant of its own, and a token of its owner with the role `service`.
    async fn services(&self, daemon: &Daemon, tenant: &str, name: &str) -> (String, String) {
        let wanted = json!({ "name": tenant });
        self.call(daemon, "admin.v2.TenantService/Create", &wanted)
            .await;
        let wanted = json!({ "login": tenant, "name": name, "description": "" });
        let method = "api.v2.ProjectService/Create";
        let made = self.call(daemon, method, &wanted).await;
        let id = made["project"]["uuid"].as_str().unwrap().to_owned();
        let wanted = json!({
            "user": tenant,
            "tokenCreateRequest": {
                "expires": "3600s",
                "description": "services",
                "labels": { "labels": { "metalmesh.dev/openstack-role": "service" } },
                "projectRoles": { id.as_str(): "PROJECT_ROLE_OWNER" },
            },
        });
        let method = "admin.v2.TokenService/Create";
        let made = self.call(daemon, method, &wanted).await;
        (id, made["secret"].as_str().unwrap().to_owned())
    }
}

async fn content(answer: Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

/// The reason in the body of a refusal.
async fn reason(answer: Response) -> String {
    let body = content(answer).await;
    let inner = body["error_message"].as_str().unwrap();
    let inner: Value = serde_json::from_str(inner).unwrap();
    inner["faultstring"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_need_no_token_and_everything_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), "");
    let wire = Wire::of(&daemon);
    for path in ["/", "/v1", "/v1/", "/v3", "/v3/"] {
        let answer = wire.anonymous(Method::GET, path, "1.115").await;
        assert_eq!(answer.status(), 200, "{path}");
    }
    let root = content(wire.anonymous(Method::GET, "/", "1.1").await).await;
    assert_eq!(root["versions"][0]["version"], "1.115");
    assert_eq!(
        root["versions"][0]["links"][0]["href"],
        format!("{}/v1/", wire.url)
    );
    for (verb, path, version, status) in [
        (Method::GET, "/v1/nodes", "1.115", 401),
        (Method::POST, "/v1/nodes", "1.80", 401),
        (Method::GET, "/nodes/", "1.115", 401),
        (Method::GET, "/v2.0/networks", "1.115", 401),
        (Method::GET, "/v1/nodes", "1.116", 406),
        (Method::GET, "/v1/nodes", "2.0", 406),
        (Method::GET, "/v1/nonsense", "1.115", 404),
        (Method::GET, "/v1.json", "1.115", 404),
        (Method::GET, "/v1/runbooks", "1.91", 404),
        (Method::PUT, "/v1/nodes", "1.115", 405),
        (Method::POST, "/v3/auth/tokens", "1.115", 400),
    ] {
        let answer = wire.anonymous(verb.clone(), path, version).await;
        assert_eq!(answer.status(), status, "{verb} {path} {version}");
        assert!(answer.headers().contains_key("openstack-request-id"));
        let is_ironic = !path.starts_with("/v2") && !path.starts_with("/v3");
        assert_eq!(answer.headers().contains_key(NEWEST), is_ironic, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_listener_have_the_shape_of_their_api() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), "");
    let wire = Wire::of(&daemon);
    for (path, pointer) in [
        ("/v1/nodes", "/error_message"),
        ("/nonsense", "/error_message"),
        ("/v2.0/ports", "/NeutronError/message"),
        ("/v3/auth/tokens", "/error/message"),
    ] {
        let large = Value::from("x".repeat(2 << 20));
        let refused = wire.ask(Method::POST, path, &large).await;
        assert_eq!(refused.status(), 413, "{path}");
        assert!(refused.headers().contains_key("openstack-request-id"));
        let body = content(refused).await;
        let text = body.pointer(pointer).and_then(Value::as_str).unwrap();
        assert!(text.contains("too large"), "{path}: {body}");
        let url = format!("{}{path}", wire.url);
        let request = wire.http.get(url).header("X-Large", "x".repeat(17 << 10));
        let refused = request.send().await.unwrap();
        assert_eq!(refused.status(), 431, "{path}");
        let body = content(refused).await;
        assert!(
            body.pointer(pointer).is_some_and(Value::is_string),
            "{path}: {body}"
        );
    }
    let refused = wire
        .ask(Method::POST, "/v1/nodes", &Value::from("x".repeat(2 << 20)))
        .await;
    assert!(reason(refused).await.contains("too large"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_lives_on_the_wire() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), "");
    let wire = Wire::of(&daemon);
    let made = wire
        .ask(Method::POST, "/v1/chassis", &json!({"description": "hall"}))
        .await;
    assert_eq!(made.status(), 201);
    let location = made.headers()["location"].to_str().unwrap().to_owned();
    let made = content(made).await;
    let path = format!("/v1/chassis/{}", made["uuid"].as_str().unwrap());
    assert_eq!(location, format!("{}{path}", wire.url));
    let patch = json!([{"op": "add", "path": "/uuid", "value": null}]);
    let refused = wire.ask(Method::PATCH, &path, &patch).await;
    assert_eq!(refused.status(), 400);
    assert!(reason(refused).await.contains("/uuid"));
    let patch = json!([{"op": "add", "path": "/extra/a", "value": 1}]);
    let changed = content(wire.ask(Method::PATCH, &path, &patch).await).await;
    assert_eq!(changed["extra"], json!({"a": 1}));
    assert!(changed["updated_at"].is_string());
    let many = json!({"extra": {"text": "x".repeat(20_000)}});
    let refused = wire.ask(Method::POST, "/v1/chassis", &many).await;
    assert_eq!(refused.status(), 400);
    assert!(reason(refused).await.contains("extra"));
    let gone = wire.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(gone.status(), 204);
    let gone = wire.ask(Method::GET, &path, &Value::Null).await;
    assert_eq!(gone.status(), 404);
    assert!(reason(gone).await.contains("could not be found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_survive_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let before = daemon(dir.path(), "");
    let wire = Wire::of(&before);
    let step = json!({"interface": "bios", "step": "apply", "args": {}, "priority": 1});
    let template = json!({"name": "CUSTOM_T", "steps": [step]});
    let made = wire
        .ask(Method::POST, "/v1/deploy_templates", &template)
        .await;
    assert_eq!(made.status(), 201);
    before.kill();
    let after = daemon(dir.path(), "");
    let wire = Wire::of(&after);
    let path = "/v1/deploy_templates/CUSTOM_T";
    let found = content(wire.ask(Method::GET, path, &Value::Null).await).await;
    assert_eq!(found["steps"][0]["step"], "apply");
    let again = wire
        .ask(Method::POST, "/v1/deploy_templates", &template)
        .await;
    assert_eq!(again.status(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn services_with_rights_of_the_site_are_those_of_one_project() {
    let dir = tempfile::tempdir().unwrap();
    let before = daemon(dir.path(), "");
    let wire = Wire::of(&before);
    let (id, own) = wire.services(&before, "operators", "service").await;
    let (_, namesake) = wire.services(&before, "tenant", "service").await;
    let node = json!({ "driver": "metalmesh", "name": "of-the-site" });
    let made = wire.ask(Method::POST, "/v1/nodes", &node).await;
    assert_eq!(made.status(), 201);
    before.kill();
    let after = daemon(dir.path(), &format!("service_project = \"{id}\"\n"));
    for (token, count) in [(own, 1), (namesake, 0)] {
        let wire = Wire {
            token,
            ..Wire::of(&after)
        };
        let nodes = content(wire.ask(Method::GET, "/v1/nodes", &Value::Null).await).await;
        assert_eq!(nodes["nodes"].as_array().unwrap().len(), count, "{nodes}");
        let deleted = wire
            .ask(Method::DELETE, "/v1/nodes/of-the-site", &Value::Null)
            .await;
        assert!(!deleted.status().is_success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_a_project_reach_no_runbook_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), "");
    let wire = Wire::of(&daemon);
    let (owner, _) = wire.services(&daemon, "operators", "web").await;
    let (_, token) = wire.services(&daemon, "tenant", "web").await;
    let service = Wire {
        token,
        ..Wire::of(&daemon)
    };
    let step = json!({"interface": "power", "step": "reboot", "args": {}, "order": 1});
    let book = |name: &str| json!({"name": name, "steps": [step]});
    let mut owned = book("CUSTOM_OWNED");
    owned["owner"] = owner.into();
    let mut public = book("CUSTOM_PUBLIC");
    public["public"] = true.into();
    for wanted in [owned, public] {
        let made = wire.ask(Method::POST, "/v1/runbooks", &wanted).await;
        assert_eq!(made.status(), 201, "{wanted}");
    }
    let made = service
        .ask(Method::POST, "/v1/runbooks", &book("CUSTOM_OWN"))
        .await;
    assert_eq!(made.status(), 201);
    let patch = json!([{"op": "replace", "path": "/extra", "value": {"a": 1}}]);
    for (name, seen, changed) in [
        ("CUSTOM_OWNED", 404, 404),
        ("CUSTOM_PUBLIC", 200, 403),
        ("CUSTOM_OWN", 200, 200),
    ] {
        let path = format!("/v1/runbooks/{name}");
        let found = service.ask(Method::GET, &path, &Value::Null).await;
        assert_eq!(found.status(), seen, "{name}");
        let answer = service.ask(Method::PATCH, &path, &patch).await;
        assert_eq!(answer.status(), changed, "{name}");
        let traits = format!("{path}/traits/CUSTOM_T");
        let answer = service.ask(Method::PUT, &traits, &Value::Null).await;
        assert_eq!(answer.status().is_success(), changed == 200, "{name}");
        let answer = service.ask(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(answer.status().is_success(), changed == 200, "{name}");
    }
}

#[test]
fn dangerous_policy_files_are_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.yaml");
    fs::write(&policy, "\"baremetal:node:list_all\": \"\"\n").unwrap();
    let file = format!("policy_file = {:?}\n", policy.to_str().unwrap());
    let config = dir.path().join("refused.toml");
    fs::write(
        &config,
        format!("[ironic]\nlisten = \"127.0.0.1:0\"\n{file}"),
    )
    .unwrap();
    let output = Command::new(program())
        .args(["--dev", "--api-listen", "127.0.0.1:0"])
        .args(["--mesh-listen", "127.0.0.1:0", "--config"])
        .arg(&config)
        .arg("--data-dir")
        .arg(dir.path().join("refused"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("ironic.policy_file") && text.contains("baremetal:node:list_all"),
        "{text}"
    );
    let allowed = format!("{file}allow_dangerous = [\"baremetal:node:list_all\"]\n");
    assert!(daemon(dir.path(), &allowed).ironic.is_some());
}
