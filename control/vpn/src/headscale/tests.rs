//! Against a server of the test's own that speaks headscale's documented REST API on loopback.

use std::path::PathBuf;
use std::sync::Mutex;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;

const PROJECT: &str = "00000000-0000-4000-8000-000000000001";

/// Requests as they came: method and path, body.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A request line and the answer that it gets instead of the usual one.
type Replaced = Option<(&'static str, Value)>;

async fn answer(stream: TcpStream, seen: Seen, replaced: &Replaced) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let what: Vec<_> = line.split(' ').take(2).collect();
    let what = what.join(" ");
    let (mut length, mut is_authorised) = (0, false);
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.unwrap();
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(text) = header.strip_prefix("content-length: ") {
            length = text.parse().unwrap();
        }
        is_authorised |= header == "authorization: bearer the-key";
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let is_made = {
        let mut seen = seen.lock().unwrap();
        seen.push((what.clone(), body));
        seen.iter().any(|(what, _)| what == "POST /api/v1/user")
    };
    let user = json!({"id": "7", "name": PROJECT});
    let replaced = replaced.as_ref().filter(|(path, _)| what == *path);
    let (status, text) = match what.as_str() {
        _ if !is_authorised => ("401 Unauthorized", json!("no")),
        _ if replaced.is_some() => {
            let (_, answer) = replaced.unwrap();
            ("200 OK", answer.clone())
        }
        "POST /api/v1/user" => ("200 OK", json!({ "user": user })),
        "POST /api/v1/preauthkey" => (
            "200 OK",
            json!({"preAuthKey": {"user": user, "id": "1", "key": "secret", "aclTags": [],
                "expiration": "2026-11-21T20:00:00Z", "createdAt": "2026-11-21T18:00:00Z"}}),
        ),
        what if what.starts_with("GET /api/v1/node") => (
            "200 OK",
            json!({"nodes": [{"id": "3", "name": "fw", "givenName": "fw-1", "user": user,
                "ipAddresses": ["100.64.0.1"], "lastSeen": "2026-11-21T18:00:00Z",
                "online": true, "preAuthKey": {"id": "1", "key": "hidden"}},
                {"id": "4", "name": "operator", "user": user, "preAuthKey": null}]}),
        ),
        "POST /api/v1/preauthkey/expire" | "DELETE /api/v1/node/3" => ("200 OK", json!({})),
        what if what.starts_with("DELETE") => ("500 Internal Server Error", json!("no")),
        _ if is_made => ("200 OK", json!({ "users": [user] })),
        _ => ("200 OK", json!({ "users": [] })),
    };
    let text = text.to_string();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: ");
    let all = format!("{head}{}\r\n\r\n{text}", text.len());
    stream.write_all(all.as_bytes()).await.unwrap();
}

async fn headscale() -> (String, Seen, JoinSet<()>) {
    headscale_that_answers(None).await
}

async fn headscale_that_answers(replaced: Replaced) -> (String, Seen, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let seen = Seen::default();
    let all = Arc::clone(&seen);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, Arc::clone(&all), &replaced).await;
        }
    });
    (url, seen, tasks)
}

fn vpn(url: &str, key: &str) -> Arc<dyn Vpn> {
    let _provider = rustls::crypto::ring::default_provider().install_default();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, format!("{key}\n")).unwrap();
    let section = HeadscaleSection {
        url: Some(url.to_owned()),
        address: None,
        api_key_file: Some(file),
    };
    let settings = section.check().unwrap();
    open(settings.as_ref()).unwrap().unwrap()
}

#[tokio::test]
async fn a_project_becomes_a_user_once() {
    let (url, seen, _tasks) = headscale().await;
    let vpn = vpn(&url, "the-key");
    assert!(vpn.nodes(Some(PROJECT)).await.unwrap().is_empty());
    let wanted = WantedVpnKey {
        user: PROJECT.into(),
        ephemeral: true,
        reusable: false,
        life: Duration::from_secs(3600),
    };
    let made = vpn.key(wanted.clone()).await.unwrap();
    assert_eq!(made.key, "secret");
    assert_eq!(made.expires_at.since_ms(made.created_at), 7_200_000);
    assert!(!format!("{made:?} {vpn:?}").contains("secret"));
    vpn.key(wanted).await.unwrap();
    let nodes = vpn.nodes(Some(PROJECT)).await.unwrap();
    assert_eq!(nodes[0].name, "fw-1");
    assert_eq!(nodes[0].user, PROJECT);
    assert!(nodes[0].online && nodes[0].last_seen.is_some());
    let seen = seen.lock().unwrap();
    let made: Vec<_> = seen
        .iter()
        .filter(|call| call.0 == "POST /api/v1/user")
        .collect();
    assert_eq!(made.len(), 1);
    let keys: Vec<_> = seen.iter().filter(|it| it.0.contains("preauth")).collect();
    assert_eq!(keys[0].1["user"], "7");
    assert_eq!(keys[0].1["ephemeral"], true);
    let expiration = keys[0].1["expiration"].as_str().unwrap();
    assert!(
        expiration.ends_with('Z') && expiration.contains('T'),
        "{expiration}"
    );
}

#[tokio::test]
async fn a_removed_key_takes_only_its_own_nodes() {
    let (url, seen, _tasks) = headscale().await;
    let vpn = vpn(&url, "the-key");
    let wanted = WantedVpnKey {
        user: PROJECT.into(),
        ephemeral: false,
        reusable: false,
        life: Duration::from_secs(3600),
    };
    let made = vpn.key(wanted).await.unwrap();
    assert_eq!(made.id, "1");
    vpn.remove(PROJECT, &made.id).await.unwrap();
    let seen = seen.lock().unwrap();
    let whats: Vec<_> = seen.iter().map(|it| it.0.as_str()).collect();
    let at = |what: &str| whats.iter().position(|it| it.starts_with(what)).unwrap();
    assert!(
        at("POST /api/v1/preauthkey/expire") < at("GET /api/v1/node"),
        "no node may come in after the look: {whats:?}"
    );
    let removed: Vec<_> = whats.iter().filter(|it| it.starts_with("DELETE")).collect();
    assert_eq!(removed, [&"DELETE /api/v1/node/3"]);
}

#[tokio::test]
async fn an_unreadable_answer_names_its_field() {
    for (path, answer, field) in [
        (
            "GET /api/v1/node",
            json!({"nodes": [{"id": "x7", "name": "fw"}]}),
            "node.id",
        ),
        (
            "GET /api/v1/node",
            json!({"nodes": [{"name": "fw"}]}),
            "node.id",
        ),
        (
            "GET /api/v1/node",
            json!({"nodes": [{"id": "3", "lastSeen": "yesterday"}]}),
            "node.lastSeen",
        ),
    ] {
        let (url, _, _tasks) = headscale_that_answers(Some((path, answer))).await;
        let refused = vpn(&url, "the-key").nodes(None).await.unwrap_err();
        assert!(refused.to_string().contains(field), "{refused}");
    }
}

#[tokio::test]
async fn a_key_without_a_readable_time_is_refused() {
    const CREATED: &str = "2026-11-21T18:00:00Z";
    let key = |times: serde_json::Value| {
        let mut key = json!({"id": "1", "key": "secret"});
        key.as_object_mut()
            .unwrap()
            .extend(times.as_object().unwrap().clone());
        json!({ "preAuthKey": key })
    };
    for (times, field) in [
        (
            json!({"createdAt": CREATED, "expiration": "never"}),
            "preAuthKey.expiration",
        ),
        (json!({"createdAt": CREATED}), "preAuthKey.expiration"),
        (
            json!({"createdAt": CREATED, "expiration": "0001-01-01T00:00:00Z"}),
            "preAuthKey.expiration",
        ),
        (json!({"expiration": CREATED}), "preAuthKey.createdAt"),
    ] {
        let answer = Some(("POST /api/v1/preauthkey", key(times)));
        let (url, _, _tasks) = headscale_that_answers(answer).await;
        let wanted = WantedVpnKey {
            user: PROJECT.into(),
            ephemeral: true,
            reusable: false,
            life: Duration::from_secs(3600),
        };
        let refused = vpn(&url, "the-key").key(wanted).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(field), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn a_node_that_was_never_seen_has_no_time() {
    let nodes = json!({"nodes": [{"id": "3", "lastSeen": "0001-01-01T00:00:00Z"}]});
    let (url, _, _tasks) = headscale_that_answers(Some(("GET /api/v1/node", nodes))).await;
    let nodes = vpn(&url, "the-key").nodes(None).await.unwrap();
    assert_eq!((nodes[0].id, nodes[0].last_seen), (3, None));
}

#[tokio::test]
async fn refusals_and_silence() {
    let (url, _, _tasks) = headscale().await;
    let refused = vpn(&url, "another").nodes(None).await.unwrap_err();
    assert!(matches!(refused, VpnError::KeyRefused), "{refused}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let silent = vpn(&nobody, "the-key").nodes(None).await.unwrap_err();
    assert!(matches!(silent, VpnError::Unreachable(_)), "{silent}");
    assert!(!silent.to_string().contains("the-key"));
}

#[test]
fn mistakes_name_the_field() {
    let check = |url: Option<&str>, key: bool| {
        let section = HeadscaleSection {
            url: url.map(str::to_owned),
            address: None,
            api_key_file: key.then(|| PathBuf::from("/key")),
        };
        section.check().map_err(|error| format!("{error:#}"))
    };
    assert_eq!(check(None, false), Ok(None));
    for (url, key, field) in [
        (None, true, "vpn.url"),
        (Some("headscale"), true, "vpn.url"),
        (Some("ftp://x"), true, "vpn.url"),
        (Some("https://me:secret@x"), true, "vpn.url"),
        (Some("https://x"), false, "vpn.api_key_file"),
    ] {
        let error = check(url, key).unwrap_err();
        assert!(error.contains(field), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
