//! Large lists: the same in every protocol, made as they are read, and a bounded number of them.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use control_state::{CreateToken, TokenType};
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::BodyExt;
use prost::Message;
use proto_public::admin::v2 as admin;
use proto_public::json;
use proto_types::TokenId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::body::Body;
use tower::Service;
use uuid::Uuid;

use crate::node::{Node, Wire};
use crate::raw_http::post;

const TOKENS: &str = "/metalstack.admin.v2.TokenService/List";
const JSON: (&str, &str) = ("content-type", "application/json");
/// Tokens of one user; its budget is 200.
const TOKENS_PER_USER: usize = 190;

/// Tokens with as many labels as one may have: 20 KB each.
async fn label_tokens(node: &Node, users: usize) -> usize {
    let labels = (0..64).map(|label| (format!("label-{label}"), "x".repeat(300)));
    let labels: std::collections::BTreeMap<_, _> = labels.collect();
    let token = |user: usize| CreateToken {
        id: TokenId::new(Uuid::now_v7()),
        user: format!("user-{user}"),
        description: String::new(),
        labels: labels.clone(),
        permissions: Vec::new(),
        expires: node.store.now().plus_ms(3_600_000),
        token_type: TokenType::Api,
        project_roles: Default::default(),
        tenant_roles: Default::default(),
        admin_role: None,
        infra_role: None,
        machine_roles: Default::default(),
        warrant: None,
    };
    for user in 0..users {
        join_all((0..TOKENS_PER_USER).map(|_| node.hardware(token(user)))).await;
    }
    users * TOKENS_PER_USER
}

/// The one message in frames of gRPC-Web, of which the last one is the trailers.
fn web_message(body: &[u8]) -> &[u8] {
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap());
    let (message, trailers) = body[5..].split_at(length.try_into().unwrap());
    assert_eq!((body[0], trailers[0]), (0, 0x80));
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_list_is_the_same_in_every_protocol() {
    let node = Node::start().await;
    let made = label_tokens(&node, 1).await;
    let mut client = admin::token_service_client::TokenServiceClient::new(node.as_admin())
        .max_decoding_message_size(64 << 20);
    let request = admin::TokenServiceListRequest::default();
    let wanted = client.list(request).await.unwrap().into_inner();
    assert_eq!(wanted.tokens.len(), made + 1);
    let bearer = format!("Bearer {}", node.admin);
    let auth = ("authorization", bearer.as_str());
    let decoded = |bytes: &[u8]| admin::TokenServiceListResponse::decode(bytes).unwrap();

    let proto = ("content-type", "application/proto");
    let plain = post(&node, TOKENS, &[proto, auth], Vec::new()).await;
    assert_eq!((plain.status, decoded(&plain.body)), (200, wanted.clone()));
    let gzip = ("accept-encoding", "gzip");
    let zipped = post(&node, TOKENS, &[proto, auth, gzip], Vec::new()).await;
    let mut unzipped = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&zipped.body[..]);
    std::io::Read::read_to_end(&mut decoder, &mut unzipped).unwrap();
    assert!(zipped.body.len() < plain.body.len() / 10);
    assert_eq!(decoded(&unzipped), wanted);
    let text = post(&node, TOKENS, &[JSON, auth], Vec::new()).await;
    let output = &proto_public::method(TOKENS).unwrap().output;
    let read = json::to_proto(output, &text.body).unwrap();
    assert_eq!(decoded(&read), wanted);
    let web = ("content-type", "application/grpc-web+proto");
    let framed = post(&node, TOKENS, &[web, auth], vec![0; 5]).await;
    assert_eq!(decoded(web_message(&framed.body)), wanted);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_is_an_empty_answer_and_fields_beside_a_list_stay() {
    let node = Node::start().await;
    let bearer = format!("Bearer {}", node.admin);
    let auth = ("authorization", bearer.as_str());
    let sizes = "/metalstack.api.v2.SizeService/List";
    let empty = post(&node, sizes, &[JSON, auth], Vec::new()).await;
    assert_eq!((empty.status, &empty.body[..]), (200, &b"{}"[..]));
    for login in ["aa", "bb", "cc"] {
        node.tenant(login).await;
    }
    let tenants = "/metalstack.admin.v2.TenantService/List";
    let paging = br#"{"query":{"paging":{"page":"0","count":"2"}}}"#;
    let page = post(&node, tenants, &[JSON, auth], paging.to_vec()).await;
    let page = page.json();
    assert_eq!(page["tenants"].as_array().unwrap().len(), 2);
    assert_eq!(page["nextPage"], "1");
    let trail = "/metalmesh.admin.v1.AuditTrailService/List";
    let trail = post(&node, trail, &[JSON, auth], Vec::new()).await.json();
    assert!(trail["anchor"]["hash"].is_string() && trail["records"][0]["sequence"].is_string());
    node.stop().await;
}

/// Asks for all tokens and reads the head of the answer alone.
async fn open(node: &Node, token: &str) -> (u16, TcpStream) {
    let mut stream = TcpStream::connect(node.address).await.unwrap();
    let request = format!(
        "POST {TOKENS} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         authorization: Bearer {token}\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    let status = std::str::from_utf8(&head[9..]).unwrap().parse().unwrap();
    (status, stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_so_many_large_lists_that_it_does_not_read() {
    let node = Node::start().await;
    // More than the buffers of a connection take.
    label_tokens(&node, 5).await;
    let mut unread = Vec::new();
    let refused = loop {
        let (status, stream) = open(&node, &node.admin).await;
        if status != 200 {
            break status;
        }
        unread.push(stream);
    };
    assert_eq!((refused, unread.len()), (429, 16));
    // What is small is answered, and what is given up makes room.
    let bearer = format!("Bearer {}", node.admin);
    let sizes = "/metalstack.api.v2.SizeService/List";
    let auth = ("authorization", bearer.as_str());
    assert_eq!(
        post(&node, sizes, &[JSON, auth], Vec::new()).await.status,
        200
    );
    unread.pop();
    let again = async {
        while open(&node, &node.admin).await.0 != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again)
        .await
        .unwrap();
    drop(unread);
    node.stop().await;
}

/// The same over gRPC, on a connection that others share.
async fn open_grpc(wire: &mut Wire) -> (bool, Response<Body>) {
    let message = http_body_util::Full::new(Bytes::from_static(&[0; 5]));
    let request = Request::post(format!("http://test{TOKENS}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(message))
        .unwrap();
    poll_fn(|context| wire.poll_ready(context)).await.unwrap();
    let response = wire.call(request).await.unwrap().map(Body::new);
    let status = response.headers().get("grpc-status");
    let is_refused = status.is_some_and(|status| status == "8");
    assert_eq!(status.is_some(), is_refused);
    (is_refused, response)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_one_connection_are_bounded_too() {
    let node = Node::start().await;
    // More than a connection of HTTP/2 takes for a stream that nobody reads.
    label_tokens(&node, 1).await;
    let mut wire = node.as_admin();
    let mut unread = Vec::new();
    loop {
        let (is_refused, response) = open_grpc(&mut wire).await;
        if is_refused {
            break;
        }
        unread.push(response.into_body());
    }
    assert_eq!(unread.len(), 16);
    // What is given up makes room.
    unread.pop();
    let again = async { while open_grpc(&mut wire).await.0 {} };
    let again = tokio::time::timeout(Duration::from_secs(20), again);
    again.await.unwrap();
    drop(unread);
    let again = async {
        loop {
            let (is_refused, response) = open_grpc(&mut wire).await;
            if !is_refused {
                break response.into_body().collect().await.unwrap();
            }
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(20), again).await;
    let read = read.unwrap();
    assert_eq!(read.trailers().unwrap()["grpc-status"], "0");
    assert!(read.to_bytes().len() > 3 << 20);
    drop(wire);
    node.stop().await;
}
