//! Strangers beside a tenant's calls: silent connections, heads without a body, floods of resets.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use control_front::serve::ConnectionLimits;
use control_state::CreateProject;
use http::{Request, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proto_public::api::v2 as api;
use tests_support::objects;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::node::Node;

/// Longer than any wait of a test that works.
const PATIENCE: Duration = Duration::from_secs(20);
const VERSION: &str = "/metalstack.api.v2.VersionService/Get";
const LIST: &str = "/metalstack.api.v2.MachineService/List";
/// The strangers' address; tenants call from 127.0.0.1, and strangers too where it says so.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

type Body = BoxBody<Bytes, Infallible>;

async fn connect(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind((IpAddr::V4(from), 0).into()).unwrap();
    timeout(PATIENCE, socket.connect(to))
        .await
        .unwrap()
        .unwrap()
}

fn request(path: &str, token: Option<&str>, body: Body) -> Request<Body> {
    let request = Request::post(format!("http://test{path}"))
        .header("host", "test")
        .header("content-type", "application/json");
    let request = match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    };
    request.body(body).unwrap()
}

fn whole(body: &str) -> Body {
    Full::new(Bytes::copy_from_slice(body.as_bytes())).boxed()
}

/// A tenant that lists its machines.
struct Tenant {
    token: String,
    request: String,
}

impl Tenant {
    async fn new(node: &Node, login: &str) -> Self {
        let (project, token) = node.tenant(login).await;
        let request = serde_json::json!({ "project": project }).to_string();
        Self { token, request }
    }

    /// A call on this connection.
    async fn call_on(&self, line: &mut Line) -> Result<StatusCode, String> {
        let request = request(LIST, Some(&self.token), whole(&self.request));
        line.call(request).await
    }

    /// A call on a connection of its own.
    async fn call(&self, node: &Node) -> Result<StatusCode, String> {
        let opened = timeout(PATIENCE, Line::open(HERE, node.address)).await;
        let mut line = opened.map_err(|_| "no connection".to_owned())?;
        self.call_on(&mut line).await
    }
}

/// A body that never comes.
fn never() -> Body {
    let frames = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
    BodyExt::boxed(StreamBody::new(frames))
}

/// A connection of HTTP/1.1 that stays open.
struct Line {
    sender: http1::SendRequest<Body>,
    _work: JoinSet<()>,
}

impl Line {
    async fn open(from: Ipv4Addr, to: SocketAddr) -> Self {
        let stream = TokioIo::new(connect(from, to).await);
        let (sender, connection) = http1::handshake(stream).await.unwrap();
        let mut work = JoinSet::new();
        work.spawn(async move { drop(connection.await) });
        Self {
            sender,
            _work: work,
        }
    }

    async fn call(&mut self, request: Request<Body>) -> Result<StatusCode, String> {
        let called = async {
            self.sender.ready().await.map_err(|e| e.to_string())?;
            let answer = self.sender.send_request(request);
            let answer = answer.await.map_err(|e| e.to_string())?;
            let status = answer.status();
            let body = answer.into_body().collect().await;
            body.map_err(|e| e.to_string())?;
            Ok(status)
        };
        let called = timeout(PATIENCE, called).await;
        called.unwrap_or_else(|_| Err("no answer".to_owned()))
    }
}

/// So many heads without a body, over connections of HTTP/2; returns once the node refuses one.
async fn heads(node: &Node, from: Ipv4Addr, token: Option<&str>) -> JoinSet<Option<StatusCode>> {
    const CONNECTIONS: usize = 9;
    const STREAMS: usize = 230;
    let mut work = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let stream = TokioIo::new(connect(from, node.address).await);
        let made = http2::handshake(TokioExecutor::new(), stream).await;
        let (sender, connection) = made.unwrap();
        work.spawn(async move {
            drop(connection.await);
            None
        });
        for _ in 0..STREAMS {
            let mut sender = sender.clone();
            let request = request(VERSION, token, never());
            work.spawn(async move {
                let answer = sender.send_request(request).await;
                Some(answer.ok()?.status())
            });
        }
    }
    let refused = async {
        while let Some(answer) = work.join_next().await {
            if answer.unwrap() == Some(StatusCode::TOO_MANY_REQUESTS) {
                return;
            }
        }
        panic!("no head was refused");
    };
    timeout(PATIENCE, refused).await.unwrap();
    work
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_without_a_body_leave_room_for_tenants() {
    let node = Node::start().await;
    let acme = Tenant::new(&node, "acme").await;
    let greedy = Tenant::new(&node, "greedy").await;
    for (from, token) in [
        (ELSEWHERE, None),
        (HERE, None),
        (ELSEWHERE, Some(greedy.token.as_str())),
    ] {
        let flood = heads(&node, from, token).await;
        let who = format!("{from}, token: {}", token.is_some());
        for _ in 0..3 {
            assert_eq!(acme.call(&node).await, Ok(StatusCode::OK), "{who}");
        }
        drop(flood);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_leave_room_for_tenants() {
    const SILENT: usize = 4_200;
    let node = Node::start().await;
    let acme = Tenant::new(&node, "acme").await;
    let mut before = Line::open(HERE, node.address).await;
    assert_eq!(acme.call_on(&mut before).await, Ok(StatusCode::OK));
    for from in [ELSEWHERE, HERE] {
        let mut silent = Vec::new();
        while silent.len() < SILENT {
            silent.push(connect(from, node.address).await);
        }
        for _ in 0..3 {
            assert_eq!(acme.call(&node).await, Ok(StatusCode::OK), "{from}");
        }
        let kept = acme.call_on(&mut before).await;
        assert_eq!(
            kept,
            Ok(StatusCode::OK),
            "{from}: a tenant's own connection"
        );
    }
    node.stop().await;
}

/// A stranger's resets cost the others nothing but time, and little of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_resets_leaves_room_for_tenants() {
    const RESETS: usize = 20_000;
    let node = Node::start().await;
    let acme = Tenant::new(&node, "acme").await;
    let stream = TokioIo::new(connect(ELSEWHERE, node.address).await);
    let made = http2::handshake(TokioExecutor::new(), stream).await;
    let (mut sender, connection) = made.unwrap();
    let mut work = JoinSet::new();
    work.spawn(async move { drop(connection.await) });
    for number in 0..RESETS {
        if sender.ready().await.is_err() {
            // The node ended the connection: the flood is over.
            break;
        }
        drop(sender.send_request(request(VERSION, None, never())));
        if number % 4_000 == 0 {
            assert_eq!(acme.call(&node).await, Ok(StatusCode::OK), "{number}");
        }
    }
    assert_eq!(acme.call(&node).await, Ok(StatusCode::OK));
    node.stop().await;
}

#[tokio::test]
async fn a_head_is_bounded() {
    let node = Node::start().await;
    let stream = TokioIo::new(connect(ELSEWHERE, node.address).await);
    let made = http2::handshake(TokioExecutor::new(), stream).await;
    let (mut sender, connection) = made.unwrap();
    let mut work = JoinSet::new();
    work.spawn(async move { drop(connection.await) });
    let mut large = request(VERSION, None, Empty::new().boxed());
    let value = "x".repeat(64 << 10).parse().unwrap();
    large.headers_mut().insert("x-large", value);
    let answer = sender.send_request(large).await;
    let status = answer.map(|answer| answer.status());
    let is_refused = status.as_ref().map_or(true, |status| {
        *status == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    });
    assert!(is_refused, "{status:?}");
    let mut line = Line::open(ELSEWHERE, node.address).await;
    let mut large = request(VERSION, None, whole("{}"));
    let value = "x".repeat(20_000).parse().unwrap();
    large.headers_mut().insert("x-large", value);
    let refused = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    assert_eq!(line.call(large).await, Ok(refused));
    node.stop().await;
}

/// A user whose answers are large asks again and again, and reads nothing.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_not_read_are_bounded() {
    let node = Node::start().await;
    let (acme, greedy) = (
        Tenant::new(&node, "acme").await,
        Tenant::new(&node, "greedy").await,
    );
    for number in 0..150_u128 {
        let labels = (0..64).map(|key| (format!("key-{key}"), "x".repeat(256)));
        node.hardware(CreateProject {
            labels: labels.collect(),
            owner: Some("greedy".parse().unwrap()),
            ..objects::project(number + 1, "greedy")
        })
        .await;
    }
    let login = node.login("greedy").await;
    let stream = TokioIo::new(connect(HERE, node.address).await);
    let made = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1)
        .handshake(stream)
        .await;
    let (mut sender, connection) = made.unwrap();
    let mut work = JoinSet::new();
    work.spawn(async move { drop(connection.await) });
    let mut unread = Vec::new();
    let refused = loop {
        let user = "/metalstack.api.v2.UserService/Get";
        sender.ready().await.unwrap();
        let answer = sender.send_request(request(user, Some(&login), whole("{}")));
        let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
        if answer.status() != StatusCode::OK {
            break answer.status();
        }
        unread.push(answer);
        assert!(unread.len() < 100, "nothing bounds them");
    };
    assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(acme.call(&node).await, Ok(StatusCode::OK));
    drop((unread, sender));
    work.abort_all();
    // What nobody waits for any more makes room.
    let again = async { while greedy.call(&node).await != Ok(StatusCode::OK) {} };
    timeout(PATIENCE, again).await.unwrap();
    node.stop().await;
}

/// Reads until the node ends the connection.
async fn ended(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    // A reset is an end, too.
    drop(read.expect("the connection stays open"));
}

#[tokio::test]
async fn strangers_have_deadlines_and_a_tenants_connection_has_none() {
    let limits = ConnectionLimits {
        first_byte: Duration::from_millis(100),
        first_request: Duration::from_millis(100),
        stranger_idle: Duration::from_millis(200),
        ..ConnectionLimits::default()
    };
    let node = Node::start_bounded_connections(limits).await;
    let acme = Tenant::new(&node, "acme").await;
    let mut own = Line::open(HERE, node.address).await;
    assert_eq!(acme.call_on(&mut own).await, Ok(StatusCode::OK));
    // Nothing at all, half a head of either version, and nothing after a call.
    for begin in ["", "POST / HTTP/1.1\r\nhost:", "PRI * HTTP/2.0\r\n"] {
        let mut stream = connect(ELSEWHERE, node.address).await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        ended(stream).await;
    }
    let mut idle = connect(ELSEWHERE, node.address).await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n")
        .await
        .unwrap();
    ended(idle).await;
    assert_eq!(acme.call_on(&mut own).await, Ok(StatusCode::OK));
    node.stop().await;
}

/// A user's connections are its own, with however many tokens: its idle ones make room, others'
/// do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_so_many_connections() {
    let limits = ConnectionLimits {
        of_one_token: 4,
        ..ConnectionLimits::default()
    };
    let node = Node::start_bounded_connections(limits).await;
    let (acme, greedy) = (
        Tenant::new(&node, "acme").await,
        Tenant::new(&node, "greedy").await,
    );
    let more = api::TokenServiceCreateRequest {
        project_roles: [("*".to_owned(), api::ProjectRole::Owner.into())].into(),
        ..Default::default()
    };
    let other = Tenant {
        token: node.token_of("greedy", more).await.1,
        request: greedy.request.clone(),
    };
    let mut own = Line::open(HERE, node.address).await;
    assert_eq!(acme.call_on(&mut own).await, Ok(StatusCode::OK));
    let mut many = Vec::new();
    for with in [&greedy, &other].into_iter().cycle().take(12) {
        let mut line = Line::open(HERE, node.address).await;
        assert_eq!(with.call_on(&mut line).await, Ok(StatusCode::OK));
        many.push(line);
    }
    for mut line in many.drain(..8) {
        assert!(
            greedy.call_on(&mut line).await.is_err(),
            "an old one is over"
        );
    }
    for mut line in many {
        assert_eq!(greedy.call_on(&mut line).await, Ok(StatusCode::OK));
    }
    assert_eq!(acme.call_on(&mut own).await, Ok(StatusCode::OK));
    node.stop().await;
}
