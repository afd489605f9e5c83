//! BMCs that are silent, endless, or link to somewhere else: each ends in a bounded time, with a
//! reason.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where its ground is missing"
)]

use std::time::{Duration, Instant};

use bmc_redfish::{Credentials, Endpoint, RedfishError, Session, Timing, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const SHORT: Timing = Timing {
    connect: Duration::from_millis(500),
    request: Duration::from_millis(800),
};

/// A server that answers each connection's requests with fixed bytes; none for silence.
async fn server(answer: Option<Vec<u8>>) -> (Session, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0_u8; 4096];
            while let Ok(1..) = stream.read(&mut buffer).await {
                match &answer {
                    Some(bytes) if stream.write_all(bytes).await.is_ok() => {}
                    Some(_) => break,
                    None => std::future::pending().await,
                }
            }
        }
    });
    let endpoint = Endpoint {
        address,
        trust: Trust::PlainHttp,
    };
    let session = Session::new(endpoint, Credentials::new("admin", "secret"), SHORT).unwrap();
    (session, tasks)
}

fn json(body: &str) -> Option<Vec<u8>> {
    let len = body.len();
    Some(format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{body}").into_bytes())
}

async fn failure(answer: Option<Vec<u8>>) -> (RedfishError, Duration) {
    let (mut session, _tasks) = server(answer).await;
    let started = Instant::now();
    let error = session.system().await.unwrap_err();
    (error, started.elapsed())
}

#[tokio::test]
async fn each_failure_has_its_reason_and_its_end() {
    let (silent, took) = failure(None).await;
    assert!(matches!(silent, RedfishError::Silent { .. }), "{silent}");
    assert!(took < Duration::from_secs(5));
    let (endless, _) = failure(Some(
        [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n"[..],
            &vec![b' '; 9_000_000],
        ]
        .concat(),
    ))
    .await;
    assert!(matches!(endless, RedfishError::Body { .. }), "{endless}");
    let (foreign, _) = failure(json(
        r#"{"Systems":{"@odata.id":"http://evil/redfish/v1"}}"#,
    ))
    .await;
    assert!(matches!(foreign, RedfishError::Link(_)), "{foreign}");
    let long = format!("/redfish/{}", "x".repeat(1 << 20));
    let (long, _) = failure(json(&format!(r#"{{"Systems":{{"@odata.id":"{long}"}}}}"#))).await;
    assert!(matches!(long, RedfishError::Link(_)));
    assert!(long.to_string().len() < 400, "{}", long.to_string().len());
    let (upwards, _) = failure(json(r#"{"Systems":{"@odata.id":"/redfish/../etc"}}"#)).await;
    assert!(matches!(upwards, RedfishError::Link(_)), "{upwards}");
    let (odd, _) = failure(json("<html>")).await;
    assert!(matches!(odd, RedfishError::Malformed { .. }), "{odd}");
    let (bare, _) = failure(json("{}")).await;
    assert!(bare.to_string().contains("links to no systems"), "{bare}");
    let (gibberish, _) = failure(Some(b"SSH-2.0-x\r\n".to_vec())).await;
    assert!(
        matches!(gibberish, RedfishError::Broken { .. }),
        "{gibberish}"
    );
    let (looped, took) = failure(json(
        r#"{"Systems":{"@odata.id":"/redfish/v1"},"Members":[]}"#,
    ))
    .await;
    assert!(looped.to_string().contains("no system"), "{looped}");
    assert!(took < Duration::from_secs(5));
}

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let endpoint = Endpoint {
        address,
        trust: Trust::Pin([0; 32]),
    };
    let credentials = Credentials::new("admin", "secret");
    let mut session = Session::new(endpoint, credentials, SHORT).unwrap();
    assert!(!format!("{session:?}").contains("secret"));
    let error = session.system().await.unwrap_err();
    assert!(matches!(error, RedfishError::Connect(_)), "{error}");
}

/// Many BMCs quote the value that they refuse. The tag may be a secret.
#[tokio::test]
async fn the_error_of_a_refused_asset_tag_does_not_quote_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while let Ok(1..) = stream.read_buf(&mut request).await {
            let text = String::from_utf8_lossy(&request).into_owned();
            let answer = if text.starts_with("GET") && text.ends_with("\r\n\r\n") {
                let root = r#"{"Systems":{"@odata.id":"/redfish/v1/"},
                    "Members":[{"@odata.id":"/redfish/v1/"}]}"#;
                json(root).unwrap()
            } else if text.ends_with('}') {
                let body = text.rsplit("\r\n\r\n").next().unwrap().replace('"', "");
                let error = format!(r#"{{"error":{{"message":"no value {body}"}}}}"#);
                let len = error.len();
                let head = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {len}\r\n\r\n");
                (head + &error).into_bytes()
            } else {
                continue;
            };
            request.clear();
            stream.write_all(&answer).await.unwrap();
        }
    });
    let endpoint = Endpoint {
        address,
        trust: Trust::PlainHttp,
    };
    let mut session = Session::new(endpoint, Credentials::new("admin", "secret"), SHORT).unwrap();
    let system = session.system().await.unwrap();
    let error = session.set_asset_tag(&system, "mm-sesame").await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, RedfishError::Status { status: 400, .. }),
        "{error:?}"
    );
    assert!(
        !format!("{error} {error:?}").contains("sesame"),
        "{error:?}"
    );
}
