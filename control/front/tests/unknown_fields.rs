//! JSON with fields that a request does not have, over real HTTP: methods of our own packages refuse
//! it, because a rule without its misspelt field permits more; published methods ignore the field,
//! as the published server does.

#![expect(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use control_front::{Call, Front, Gate, serve};
use http::{Extensions, HeaderMap};
use proto_public::Method;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Code, Status};

const SET: &str = "metalmesh.admin.v1.FirewallRulesService/Set";
const SET_OF_OPERATOR: &str = "metalmesh.admin.v1.OperatorRulesService/Set";
const REMOVE: &str = "metalmesh.admin.v1.FirewallRulesService/Remove";
const QUOTA: &str = "metalmesh.admin.v1.QuotaService/Set";
const JOIN: &str = "metalmesh.admin.v1.JoinService/Create";
/// A published method.
const PROJECTS: &str = "metalstack.api.v2.ProjectService/List";
/// Longest answer to a request that names something unknown, bytes.
const ANSWER_BYTES_MAX: usize = 4096;

/// Lets everybody in. Behind it is no handler: a request that was read ends as `unimplemented`.
struct OpenGate;

#[tonic::async_trait]
impl Gate for OpenGate {
    type Ticket = ();

    fn screen(&self, _: &'static Method, _: &HeaderMap) -> Result<Option<Arc<str>>, Status> {
        Ok(Some("anybody".into()))
    }
    async fn admit(&self, _call: Call<'_>) -> Result<(Extensions, ()), Status> {
        Ok((Extensions::new(), ()))
    }
    async fn finish(&self, _ticket: (), _code: Code) {}
}

/// Runs a test against a front on loopback.
async fn with_front(test: impl FnOnce(SocketAddr) + Send + 'static) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let front = Front::new(Arc::new(OpenGate), Routes::default());
    let stop = CancellationToken::new();
    let end = stop.clone();
    let tested = async {
        let tested = tokio::task::spawn_blocking(move || test(address)).await;
        end.cancel();
        tested
    };
    let ((), tested) = tokio::join!(serve::serve(listener, None, front, stop), tested);
    tested.unwrap();
}

/// Sends a whole request. Returns the whole answer.
fn send(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    // Frames of streams have lengths in binary.
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(address: SocketAddr, path: &str, media: &str, body: &[u8]) -> String {
    let head = format!(
        "POST /{path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\
         content-type: application/{media}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    send(address, &[head.as_bytes(), body].concat())
}

/// Frame of a message of a stream.
fn framed(message: &str) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message.as_bytes()].concat()
}

/// Requests with something that their method does not have, and parts of the refusal.
const REFUSED: [(&str, &str, &[&str]); 25] = [
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"name":"typo","too":[{"cidr":"10.9.9.9/32"}]}]}}}"#,
        &["content.cwnp.egress[0].too", " to, ", "toFQDNs"],
    ),
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{},{"ports":[{"port":1},{"prot":"UDP","port":443}]}]}}}"#,
        &[
            "content.cwnp.egress[1].ports[1].prot",
            "protocol",
            "endPort",
        ],
    ),
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"toFqdns":[{"matchName":"example.com"}]}]}}}"#,
        &["content.cwnp.egress[0].toFqdns", "toFQDNs"],
    ),
    (
        SET,
        r#"{"cwnp":{"egress":[]}}"#,
        &["cwnp: unknown field", "content"],
    ),
    (
        REMOVE,
        r#"{"project":"p","network":"n","owner":"operator"}"#,
        &["owner: unknown field", "project", "expectedRevision"],
    ),
    (
        QUOTA,
        r#"{"quota":{"limits":{"machinesOfSize":{"c1":3},"ipps":4}}}"#,
        &["quota.limits.ipps", "machinesOfSize"],
    ),
    // A field that is given twice would be the last one alone.
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"to":[{"cidr":"10.9.9.9/32"}],"to":[]}]}}}"#,
        &["content.cwnp.egress[0].to: given twice"],
    ),
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"toFQDNs":[{}],"to_fqdns":[]}]}}}"#,
        &["content.cwnp.egress[0].to_fqdns: given twice"],
    ),
    (
        QUOTA,
        r#"{"quota":{"limits":{"machinesOfSize":{"c1":3,"c1":4}}}}"#,
        &[r#"quota.limits.machinesOfSize[\"c1\"]: given twice"#],
    ),
    // Taken for absent, these would be every port, every address and every protocol.
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"name":"w","ports":null}]}}}"#,
        &["content.cwnp.egress[0].ports: it has no value", "remove"],
    ),
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"ports":[{"port":1},{"port":null}]}]}}}"#,
        &["content.cwnp.egress[0].ports[1].port: it has no value"],
    ),
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"to":[null]}]}}}"#,
        &["content.cwnp.egress[0].to[0]: it has no value"],
    ),
    (
        SET,
        r#"{"content":{"cwnp":{"egress":null}}}"#,
        &["content.cwnp.egress: it has no value"],
    ),
    (SET, r#"{"content":null}"#, &["content: it has no value"]),
    (
        SET,
        r#"{"content":{"cwnp":{"egress":[{"name":"w","to":[]}]}}}"#,
        &["content.cwnp.egress[0].to: the list is empty", "remove"],
    ),
    (
        SET,
        r#"{"content":{"service":[{"loadBalancerSourceRanges":[]}]}}"#,
        &["content.service[0].loadBalancerSourceRanges: the list is empty"],
    ),
    // A project could name every address outside.
    (
        SET_OF_OPERATOR,
        r#"{"content":{"firewall":{"allowedNetworks":{"egress":[]}}}}"#,
        &["content.firewall.allowedNetworks.egress: the list is empty"],
    ),
    (
        SET_OF_OPERATOR,
        r#"{"content":{"firewall":{"allowedNetworks":{"egress":["10.0.0.0/8"],"ingress":[]}}}}"#,
        &["content.firewall.allowedNetworks.ingress: the list is empty"],
    ),
    (
        QUOTA,
        r#"{"quota":{"updatedAt":null}}"#,
        &["quota.updatedAt: it has no value"],
    ),
    (JOIN, r#"{"kind":null}"#, &["kind: it has no value"]),
    // Ignored, it would be the default.
    (
        JOIN,
        r#"{"kind":"AGENT_KIND_CORR"}"#,
        &["kind: unknown value", "AGENT_KIND_CORE"],
    ),
    (
        JOIN,
        r#"{"kind":99}"#,
        &["kind: unknown value 99", "AGENT_KIND_CORE"],
    ),
    (
        "dry-run/metalmesh.admin.v1.FirewallRulesService/Set",
        r#"{"contents":{}}"#,
        &["contents: unknown field"],
    ),
    (SET, r#"{"project":7}"#, &["not valid JSON"]),
    (SET, "{\"\u{202e}\\u0007\\\"\":1}", &[r"\\u{202e}\\u{7}"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn our_methods_refuse_what_they_do_not_know_with_its_place() {
    with_front(|address| {
        for (path, body, parts) in REFUSED {
            let answer = post(address, path, "json", body.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 400 "), "{body}: {answer}");
            assert!(answer.contains(r#""invalid_argument""#), "{body}: {answer}");
            for part in parts {
                assert!(answer.contains(part), "{body}: {part} not in {answer}");
            }
        }
        let all = "metalmesh.admin.v1.WatchService/All";
        let stream = post(address, all, "connect+json", &framed(r#"{"kindz":["ip"]}"#));
        assert!(stream.contains("kindz: unknown field"), "{stream}");
        let get = format!(
            "GET /{}?encoding=json&message=%7B%22owners%22%3A1%7D HTTP/1.1\r\nhost: test\r\n\
             connection: close\r\n\r\n",
            "metalmesh.admin.v1.FirewallRulesService/Get"
        );
        let get = send(address, get.as_bytes());
        assert!(get.contains("owners: unknown field"), "{get}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_is_short_whatever_the_request_is() {
    with_front(|address| {
        let long = "x\u{7}".repeat(100_000);
        let quoted = serde_json::Value::from(long.as_str());
        for body in [
            format!("{{{quoted}:1}}"),
            format!(r#"{{"content":{{"cwnp":{{"egress":[{{{quoted}:1}}]}}}}}}"#),
            format!(r#"{{"expectedRevision":{quoted}}}"#),
            format!(r#"{{"content":{quoted}}}"#),
        ] {
            let answer = post(address, SET, "json", body.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
            assert!(answer.len() < ANSWER_BYTES_MAX, "{}", answer.len());
        }
        let quota = format!(r#"{{"quota":{{"limits":{{"machinesOfSize":{{{quoted}:{{}}}}}}}}}}"#);
        let query = format!(r#"{{"query":{quoted}}}"#);
        for (path, body) in [(QUOTA, quota), (PROJECTS, query)] {
            let answer = post(address, path, "json", body.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
            assert!(answer.len() < ANSWER_BYTES_MAX, "{}", answer.len());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn published_methods_binary_messages_and_right_requests_pass() {
    with_front(|address| {
        let right = r#"{"project":"p","expected_revision":"1","content":{"cwnp":{"egress":[
            {"name":"web","to":[{"cidr":"10.9.9.9/32"}],
             "ports":[{"protocol":"UDP","port":443,"end_port":444}]}],"ingress":[]}}}"#;
        let quota = r#"{"quota":{"project":"p","limits":{"machinesOfSize":{"c1":3,"c2":4}},
            "updatedAt":"2026-01-01T00:00:00Z"}}"#;
        // Field 99, a number.
        let newer = [0x98, 0x06, 1];
        for (path, media, body) in [
            (PROJECTS, "json", &br#"{"newer":[{"a":1}]}"#[..]),
            (PROJECTS, "json", br#"{"query":{"newer":1}}"#),
            (PROJECTS, "json", br#"{"query":null}"#),
            (SET, "json", right.as_bytes()),
            (SET, "json", b""),
            (QUOTA, "json", quota.as_bytes()),
            (JOIN, "json", br#"{"kind":"AGENT_KIND_CORE"}"#),
            (JOIN, "json", br#"{"kind":1}"#),
            (SET, "proto", &newer),
        ] {
            let answer = post(address, path, media, body);
            assert!(answer.starts_with("HTTP/1.1 501 "), "{path}: {answer}");
        }
    })
    .await;
}
