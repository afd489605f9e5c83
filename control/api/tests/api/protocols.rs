//! Connect, gRPC-Web and limits, byte by byte over HTTP/1.1.

use std::io::{Read, Write};
use std::net::TcpStream;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::node::Node;

pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// One request on a connection of its own.
pub(crate) async fn post(
    node: &Node,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Answer {
    let mut text = format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    send(node, [text.into_bytes(), body].concat()).await
}

async fn send(node: &Node, request: Vec<u8>) -> Answer {
    let address = node.address;
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        // A server that refuses early may close before all is written.
        let _written = stream.write_all(&request);
        let mut answer = Vec::new();
        let _read = stream.read_to_end(&mut answer);
        answer
    });
    let answer = answer.await.unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("no head");
    let head = String::from_utf8(answer[..end].to_vec())
        .unwrap()
        .to_ascii_lowercase();
    let mut body = answer[end + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        headers: head,
        body,
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = std::str::from_utf8(&body[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return out;
        }
        out.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

const VERSION: &str = "/metalstack.api.v2.VersionService/Get";
const CREATE: &str = "/metalstack.admin.v2.PartitionService/Create";
const LIST: &str = "/metalstack.api.v2.PartitionService/List";
const JSON: (&str, &str) = ("content-type", "application/json");

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
        (get, vec![JSON], b"{\"id\":\"xx\"}", 401),
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
    assert_eq!(end["error"]["code"], "unauthenticated");
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
    let large = vec![b' '; control_api::front::MESSAGE_BYTES_MAX + 1];
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
    let get = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = send(&node, get.as_bytes().to_vec()).await;
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (200, b"ok\n".as_slice())
    );
    let get = format!("GET {VERSION} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_eq!(send(&node, get.into_bytes()).await.status, 405);
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
    node.stop().await;
}

/// What grpcurl and probes of Kubernetes say, without a token.
#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_for_everybody() {
    use futures::StreamExt;
    use proto_public::grpc::health::v1::HealthCheckRequest;
    use proto_public::grpc::health::v1::health_check_response::ServingStatus;
    use proto_public::grpc::health::v1::health_client::HealthClient;
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let node = Node::start().await;
    let mut health = HealthClient::new(node.wire(None));
    let of = |service: &str| HealthCheckRequest {
        service: service.into(),
    };
    for service in ["", "metalstack.api.v2.MachineService"] {
        let said = health.check(of(service)).await.unwrap().into_inner();
        assert_eq!(said.status(), ServingStatus::Serving);
        let mut watch = health.watch(of(service)).await.unwrap().into_inner();
        let said = watch.next().await.unwrap().unwrap();
        assert_eq!(said.status(), ServingStatus::Serving);
    }
    let refusal = health.check(of("NoService")).await.unwrap_err();
    assert_eq!(refusal.code(), tonic::Code::NotFound);
    let mut watch = health.watch(of("NoService")).await.unwrap().into_inner();
    let said = watch.next().await.unwrap().unwrap();
    assert_eq!(said.status(), ServingStatus::ServiceUnknown);

    let mut reflection = ServerReflectionClient::new(node.wire(None));
    // The second question is asked after the first answer: both ways are open at once.
    let (mut ask, questions) = futures::channel::mpsc::channel(1);
    let answers = reflection.server_reflection_info(questions);
    let question = |it| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(it),
    };
    ask.try_send(question(MessageRequest::ListServices(String::new())))
        .unwrap();
    let mut answers = answers.await.unwrap().into_inner();
    let said = answers.next().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = said.message_response else {
        panic!("{said:?}");
    };
    let published = list
        .service
        .iter()
        .filter(|it| it.name.starts_with("metalstack."))
        .count();
    assert_eq!(published, 39);
    let symbol = "metalstack.api.v2.MachineService".to_owned();
    ask.try_send(question(MessageRequest::FileContainingSymbol(symbol)))
        .unwrap();
    let said = answers.next().await.unwrap().unwrap();
    let Some(MessageResponse::FileDescriptorResponse(file)) = said.message_response else {
        panic!("{said:?}");
    };
    assert!(!file.file_descriptor_proto.is_empty());
    drop(ask);
    assert!(answers.next().await.is_none());
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
