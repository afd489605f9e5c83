//! Connect, gRPC-Web and limits, byte by byte over HTTP/1.1.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::node::Node;
use crate::raw_http::{JSON, get, post, send};

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

const VERSION: &str = "/metalstack.api.v2.VersionService/Get";
const CREATE: &str = "/metalstack.admin.v2.PartitionService/Create";
const LIST: &str = "/metalstack.api.v2.PartitionService/List";

#[tokio::test(flavor = "multi_thread")]
async fn connect_json() {
    let node = Node::start().await;
    let bearer = format!("Bearer {}", node.admin);
    let auth = ("authorization", bearer.as_str());
    let answer = post(&node, VERSION, &[JSON], b"{}".to_vec()).await;
    assert_eq!(
        (
            answer.status,
            answer.json()["version"]["version"].is_string()
        ),
        (200, true)
    );
    assert!(answer.headers.contains("content-type: application/json"));
    let body = json!({ "partition": { "id": "lab", "description": "d" } }).to_string();
    let zipped = gzip(body.as_bytes());
    let headers = [
        JSON,
        auth,
        ("content-encoding", "gzip"),
        ("connect-protocol-version", "1"),
    ];
    let answer = post(&node, CREATE, &headers, zipped).await;
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    assert_eq!(answer.json()["partition"]["id"], "lab");
    let answer = post(&node, CREATE, &[JSON, auth], body.into_bytes()).await;
    assert_eq!(answer.status, 409);
    assert_eq!(answer.json()["code"], "already_exists");
    assert_eq!(answer.json()["details"][0]["type"], "google.rpc.ErrorInfo");
    let answer = post(&node, LIST, &[JSON, auth], Vec::new()).await;
    assert_eq!(answer.json()["partitions"].as_array().unwrap().len(), 1);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_errors() {
    let node = Node::start().await;
    let bearer = format!("Bearer {}", node.admin);
    let auth = ("authorization", bearer.as_str());
    let get = "/metalstack.api.v2.PartitionService/Get";
    let stream = "/metalstack.infra.v2.BootService/Wait";
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a [u8], u16);
    let cases: [Case<'_>; 11] = [
        (get, vec![JSON], b"{\"id\":\"xx\"}", 403),
        (
            get,
            vec![JSON, ("authorization", "Bearer x.y.z")],
            b"{\"id\":\"xx\"}",
            401,
        ),
        (get, vec![JSON, auth], b"{\"id\":\"no-such\"}", 404),
        (get, vec![JSON, auth], b"{\"id\":\"x\"}", 400),
        (get, vec![JSON, auth], b"{\"id\":", 400),
        (
            get,
            vec![("content-type", "application/proto"), auth],
            b"\xff\xff",
            400,
        ),
        (
            get,
            vec![JSON, auth, ("content-encoding", "br")],
            b"{}",
            501,
        ),
        (
            get,
            vec![JSON, auth, ("content-encoding", "gzip")],
            b"{}",
            400,
        ),
        (get, vec![("content-type", "text/plain"), auth], b"{}", 415),
        (
            "/metalstack.api.v2.PartitionService/Steal",
            vec![JSON, auth],
            b"{}",
            404,
        ),
        (stream, vec![JSON, auth], b"{}", 415),
    ];
    for (path, headers, body, status) in cases {
        let answer = post(&node, path, &headers, body.to_vec()).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, status, "{path} {headers:?}: {text}");
    }
    let answer = post(&node, get, &[JSON, auth], b"{\"id\":\"x\"}".to_vec()).await;
    assert_eq!(
        answer.json()["details"][0]["type"],
        "buf.validate.Violations"
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_web_and_its_text_form() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let node = Node::start().await;
    let frame = [0_u8, 0, 0, 0, 0].to_vec();
    let headers = [("content-type", "application/grpc-web+proto")];
    let answer = post(&node, VERSION, &headers, frame.clone()).await;
    assert_eq!((answer.status, answer.body[0]), (200, 0));
    let text = String::from_utf8_lossy(&answer.body);
    assert!(text.ends_with("grpc-status: 0\r\n"), "{text}");
    let headers = [("content-type", "application/grpc-web-text")];
    let answer = post(
        &node,
        VERSION,
        &headers,
        STANDARD.encode(&frame).into_bytes(),
    )
    .await;
    // Each frame is encoded by itself: the message, then the trailers.
    let text = String::from_utf8(answer.body).unwrap();
    let trailers = STANDARD.encode(b"\x80\x00\x00\x00\x10grpc-status: 0\r\n");
    assert!(text.ends_with(&trailers), "{text}");
    let headers = [("content-type", "application/grpc-web+json")];
    let body = [vec![0, 0, 0, 0, 2], b"{}".to_vec()].concat();
    let answer = post(&node, VERSION, &headers, body).await;
    assert!(String::from_utf8_lossy(&answer.body).contains("\"version\""));
    // gRPC proper needs trailers and so HTTP/2.
    let answer = post(
        &node,
        VERSION,
        &[("content-type", "application/grpc")],
        frame,
    )
    .await;
    assert_eq!(answer.status, 505);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_streams_are_framed_and_guarded() {
    let node = Node::start().await;
    let wait = "/metalstack.infra.v2.BootService/Wait";
    let headers = [("content-type", "application/connect+json")];
    let body = br#"{"uuid":"00000000-0000-4000-8000-000000000001"}"#;
    let mut framed = vec![0, 0, 0, 0, u8::try_from(body.len()).unwrap()];
    framed.extend_from_slice(body);
    let answer = post(&node, wait, &headers, framed.clone()).await;
    assert_eq!(
        (answer.status, answer.body[0]),
        (200, 2),
        "an end-of-stream frame"
    );
    let end: Value = serde_json::from_slice(&answer.body[5..]).unwrap();
    assert_eq!(end["error"]["code"], "permission_denied");
    let bearer = format!("Bearer {}", node.admin);
    let headers = [headers[0], ("authorization", bearer.as_str())];
    let answer = post(&node, wait, &headers, framed).await;
    let end: Value = serde_json::from_slice(&answer.body[5..]).unwrap();
    assert_eq!(end["error"]["code"], "not_found");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_deadlines_and_plain_http() {
    let node = Node::start().await;
    let large = vec![b' '; control_front::MESSAGE_BYTES_MAX + 1];
    let answer = post(&node, VERSION, &[JSON], large.clone()).await;
    assert_eq!(answer.status, 429);
    let headers = [JSON, ("content-encoding", "gzip")];
    assert_eq!(
        post(&node, VERSION, &headers, gzip(&large)).await.status,
        429
    );
    let headers = [JSON, ("connect-timeout-ms", "0")];
    assert_eq!(post(&node, VERSION, &headers, Vec::new()).await.status, 504);
    let headers = [JSON, ("connect-timeout-ms", "soon")];
    assert_eq!(post(&node, VERSION, &headers, Vec::new()).await.status, 400);
    let answer = get(&node, "/healthz", None).await;
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (200, b"ok\n".as_slice())
    );
    assert_eq!(get(&node, CREATE, None).await.status, 405);
    let preflight = format!(
        "OPTIONS {VERSION} HTTP/1.1\r\nhost: x\r\norigin: https://console.example\r\n\
         access-control-request-method: POST\r\nconnection: close\r\n\r\n"
    );
    let answer = send(&node, preflight.into_bytes()).await;
    assert_eq!(answer.status, 204);
    assert!(
        answer
            .headers
            .contains("access-control-allow-headers: authorization")
    );
    let preflight = format!(
        "OPTIONS {VERSION} HTTP/1.1\r\nhost: x\r\norigin: https://console.example\r\n\
         access-control-request-method: GET\r\n\
         access-control-request-headers: authorization,x-console-build\r\n\
         connection: close\r\n\r\n"
    );
    let answer = send(&node, preflight.into_bytes()).await;
    for header in [
        "access-control-allow-headers: authorization,x-console-build",
        "access-control-allow-methods: get, post",
    ] {
        assert!(answer.headers.contains(header), "{}", answer.headers);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_has_one_version() {
    let node = Node::start().await;
    for (version, status) in [("1", 200), ("2", 400), ("", 400)] {
        let headers = [JSON, ("connect-protocol-version", version)];
        let answer = post(&node, VERSION, &headers, b"{}".to_vec()).await;
        assert_eq!(answer.status, status, "{version:?}");
        if status == 400 {
            assert_eq!(answer.json()["code"], "invalid_argument");
        }
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_reads_by_get() {
    let node = Node::start().await;
    let query = "?connect=v1&encoding=json&message=%7B%7D";
    let answer = get(&node, &format!("{VERSION}{query}"), None).await;
    assert_eq!(answer.status, 200);
    assert!(answer.json()["version"]["version"].is_string());
    assert!(answer.headers.contains("cache-control: no-store"));

    let body = json!({ "partition": { "id": "lab" } }).to_string();
    let bearer = format!("Bearer {}", node.admin);
    let auth = ("authorization", bearer.as_str());
    post(&node, CREATE, &[JSON, auth], body.into_bytes()).await;
    let one = "/metalstack.api.v2.PartitionService/Get";
    // The message {id: "lab"}: as JSON, as protobuf, and compressed.
    let zipped: String = gzip(b"\x0a\x03lab")
        .iter()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    for message in [
        "encoding=json&message=%7B%22id%22%3A%22lab%22%7D".to_owned(),
        "encoding=json&base64=1&message=eyJpZCI6ImxhYiJ9".to_owned(),
        "encoding=proto&message=%0A%03lab".to_owned(),
        "encoding=proto&base64=1&message=CgNsYWI=".to_owned(),
        format!("encoding=proto&compression=gzip&message={zipped}"),
    ] {
        let answer = get(&node, &format!("{one}?{message}"), Some(&node.admin)).await;
        assert_eq!(answer.status, 200, "{message}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains("lab"), "{message}: {text}");
    }
    for (path, token, status) in [
        // A read that needs a token needs it here too.
        (format!("{one}?encoding=json&message=%7B%7D"), None, 403),
        (format!("{one}?encoding=json"), Some(&node.admin), 415),
        (
            format!("{VERSION}?connect=v2&encoding=json&message=%7B%7D"),
            None,
            400,
        ),
        // Others have no GET, whatever the query says.
        (format!("{CREATE}{query}"), Some(&node.admin), 405),
        (
            format!("/metalmesh.admin.v1.WatchService/All{query}"),
            Some(&node.admin),
            405,
        ),
    ] {
        let answer = get(&node, &path, token.map(String::as_str)).await;
        assert_eq!(answer.status, status, "{path}");
    }
    node.stop().await;
}

/// Large answers come in what the caller takes, small ones as they are.
#[tokio::test(flavor = "multi_thread")]
async fn large_answers_are_compressed() {
    use std::io::Read;

    let node = Node::start().await;
    let list = "/metalstack.api.v2.MethodService/List";
    let plain = post(&node, list, &[JSON], Vec::new()).await;
    let encodings = [
        ("br", None),
        ("gzip", Some("gzip")),
        ("gzip, zstd", Some("zstd")),
    ];
    for (accepted, expected) in encodings {
        let headers = [JSON, ("accept-encoding", accepted)];
        let small = post(&node, VERSION, &headers, Vec::new()).await;
        assert!(!small.headers.contains("\ncontent-encoding"), "{accepted}");
        let answer = post(&node, list, &headers, Vec::new()).await;
        let Some(expected) = expected else {
            assert_eq!(answer.body, plain.body);
            continue;
        };
        let named = format!("\ncontent-encoding: {expected}");
        assert!(answer.headers.contains(&named), "{}", answer.headers);
        assert!(answer.body.len() < plain.body.len() / 2);
        let mut body = Vec::new();
        match expected {
            "gzip" => flate2::read::GzDecoder::new(&answer.body[..])
                .read_to_end(&mut body)
                .unwrap(),
            _ => zstd::Decoder::new(&answer.body[..])
                .unwrap()
                .read_to_end(&mut body)
                .unwrap(),
        };
        assert_eq!(body, plain.body);
    }
    let zipped = zstd::bulk::compress(b"{}", 1).unwrap();
    let headers = [JSON, ("content-encoding", "zstd")];
    assert_eq!(post(&node, VERSION, &headers, zipped).await.status, 200);
    let headers = [JSON, ("content-encoding", "br")];
    let answer = post(&node, VERSION, &headers, Vec::new()).await;
    assert_eq!(
        (answer.status, answer.json()["code"].as_str()),
        (501, Some("unimplemented"))
    );
    node.stop().await;
}
