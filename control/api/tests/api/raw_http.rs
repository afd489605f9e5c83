//! Requests and answers over raw HTTP/1.1, byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::node::Node;

/// Header of a body in JSON.
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// An answer whose body is complete and no longer in chunks.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head of the answer, in lower case.
    pub(crate) headers: String,
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

/// A GET on a connection of its own.
pub(crate) async fn get(node: &Node, path: &str, token: Option<&str>) -> Answer {
    let auth = token.map_or_else(String::new, |token| {
        format!("authorization: Bearer {token}\r\n")
    });
    let text = format!("GET {path} HTTP/1.1\r\nhost: test\r\n{auth}connection: close\r\n\r\n");
    send(node, text.into_bytes()).await
}

/// Sends the bytes of a whole request and reads its answer to the end.
pub(crate) async fn send(node: &Node, request: Vec<u8>) -> Answer {
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
