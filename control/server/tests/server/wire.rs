//! Server streams read byte by byte: Connect and gRPC-Web over HTTP/1.1, in protobuf and JSON.
//! Nothing of ours reads them, so that both ends cannot share a mistake.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use proto_public::metalmesh::admin::v1::{WatchEvent, WatchServiceAllRequest};
use serde_json::{Value, json};

use crate::daemon::PATIENCE;

const ALL: &str = "/metalmesh.admin.v1.WatchService/All";

/// How a watch is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    ConnectProto,
    ConnectJson,
    WebProto,
    WebJson,
    WebText,
}

impl Wire {
    pub(crate) const EVERY: [Self; 5] = [
        Self::ConnectProto,
        Self::ConnectJson,
        Self::WebProto,
        Self::WebJson,
        Self::WebText,
    ];

    fn content_type(self) -> &'static str {
        match self {
            Self::ConnectProto => "application/connect+proto",
            Self::ConnectJson => "application/connect+json",
            Self::WebProto => "application/grpc-web+proto",
            Self::WebJson => "application/grpc-web+json",
            Self::WebText => "application/grpc-web-text",
        }
    }

    fn is_json(self) -> bool {
        matches!(self, Self::ConnectJson | Self::WebJson)
    }

    fn is_connect(self) -> bool {
        matches!(self, Self::ConnectProto | Self::ConnectJson)
    }
}

/// One change, as far as it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// PRESENT, CREATED, CHANGED or DELETED.
    pub(crate) what: String,
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) revision: u64,
}

/// One message of a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) revision: u64,
    pub(crate) listed: bool,
    pub(crate) changes: Vec<Change>,
}

/// How a stream ended: Connect's name of the code, and the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl From<WatchEvent> for Told {
    fn from(event: WatchEvent) -> Self {
        let one = |it: &proto_public::metalmesh::admin::v1::WatchChange| Change {
            what: it.r#type().as_str_name().replace("WATCH_CHANGE_TYPE_", ""),
            kind: it.kind.clone(),
            id: it.id.clone(),
            revision: it.revision,
        };
        Self {
            revision: event.revision,
            listed: event.listed,
            changes: event.changes.iter().map(one).collect(),
        }
    }
}

/// As the JSON mapping of protobuf has it: 64-bit numbers are strings, defaults are left out.
fn of_json(event: &Value) -> Told {
    let number = |value: &Value| value.as_str().map_or(0, |text| text.parse().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |it: &Value| {
        let change = Change {
            what: text(&it["type"]).replace("WATCH_CHANGE_TYPE_", ""),
            kind: text(&it["kind"]),
            id: text(&it["id"]),
            revision: number(&it["revision"]),
        };
        // An Any of a message is the message with its type.
        assert_eq!(it["object"]["id"], change.id, "{it}");
        let name = it["object"]["@type"].as_str().unwrap();
        assert!(name.ends_with("/metalstack.api.v2.Partition"), "{name}");
        change
    };
    Told {
        revision: number(&event["revision"]),
        listed: event["listed"].as_bool().unwrap_or_default(),
        changes: event["changes"]
            .as_array()
            .map_or_else(Vec::new, |all| all.iter().map(one).collect()),
    }
}

/// An open stream.
pub(crate) struct Stream {
    wire: Wire,
    input: BufReader<TcpStream>,
    /// Taken out of HTTP's chunks and base64, not yet of frames.
    bytes: Vec<u8>,
    /// Characters of base64 that are not four yet.
    text: Vec<u8>,
}

impl Stream {
    /// Asks for partitions from a revision on.
    pub(crate) fn open(wire: Wire, address: &str, token: &str, from: u64) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = request(wire, from);
        let head = format!(
            "POST {ALL} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: {}\r\ncontent-length: {}\r\n\r\n",
            wire.content_type(),
            body.len()
        );
        (&stream)
            .write_all(&[head.as_bytes(), &body].concat())
            .unwrap();
        let mut input = BufReader::new(stream);
        let head = head_of(&mut input);
        // In both protocols errors of streams come at their end, also when they are all there is.
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains(wire.content_type()), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        Self {
            wire,
            input,
            bytes: Vec::new(),
            text: Vec::new(),
        }
    }

    /// The next message, or how it ended.
    pub(crate) fn next(&mut self) -> Result<Told, End> {
        let (flags, message) = self.frame();
        match (flags, self.wire.is_connect()) {
            (0, _) if self.wire.is_json() => {
                Ok(of_json(&serde_json::from_slice(&message).unwrap()))
            }
            (0, _) => Ok(WatchEvent::decode(message.as_slice()).unwrap().into()),
            (0x02, true) => Err(connect_end(&message)),
            (0x80, false) => Err(web_end(&message)),
            (other, _) => panic!("flags {other} of {message:?}"),
        }
    }

    fn frame(&mut self) -> (u8, Vec<u8>) {
        loop {
            if let Some((head, rest)) = self.bytes.split_at_checked(5) {
                let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
                if rest.len() >= length {
                    let frame: Vec<u8> = self.bytes.drain(..5 + length).collect();
                    return (frame[0], frame[5..].to_vec());
                }
            }
            let chunk = self.chunk();
            if self.wire == Wire::WebText {
                self.text.extend(chunk);
                let whole = self.text.len() / 4 * 4;
                for four in self.text.drain(..whole).as_slice().chunks(4) {
                    self.bytes.extend(STANDARD.decode(four).unwrap());
                }
            } else {
                self.bytes.extend(chunk);
            }
        }
    }

    fn chunk(&mut self) -> Vec<u8> {
        let mut line = String::new();
        self.input.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        assert!(length > 0, "the body ended without an end of the stream");
        let mut chunk = vec![0; length + 2];
        self.input.read_exact(&mut chunk).unwrap();
        chunk.truncate(length);
        chunk
    }
}

fn request(wire: Wire, from: u64) -> Vec<u8> {
    let message = if wire.is_json() {
        let request = json!({ "kinds": ["partition"], "fromRevision": from.to_string() });
        request.to_string().into_bytes()
    } else {
        let request = WatchServiceAllRequest {
            kinds: vec!["partition".to_owned()],
            id: String::new(),
            from_revision: from,
        };
        request.encode_to_vec()
    };
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let framed = [&[0_u8][..], &length, &message].concat();
    if wire == Wire::WebText {
        return STANDARD.encode(framed).into_bytes();
    }
    framed
}

/// The answer's head in small letters.
fn head_of(input: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(input.read_line(&mut head).unwrap() > 0, "{head}");
    }
    head.to_ascii_lowercase()
}

fn connect_end(message: &[u8]) -> End {
    let end: Value = serde_json::from_slice(message).unwrap();
    let text = |name: &str| end["error"][name].as_str().unwrap_or("ok").to_owned();
    assert_eq!(end["error"]["details"][0]["type"], "google.rpc.ErrorInfo");
    End {
        code: text("code"),
        message: text("message"),
    }
}

fn web_end(trailers: &[u8]) -> End {
    let text = std::str::from_utf8(trailers).unwrap();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim_start_matches(": ").to_owned()
    };
    let code = match of("grpc-status").as_str() {
        "10" => "aborted",
        "14" => "unavailable",
        "16" => "unauthenticated",
        other => panic!("status {other}: {text}"),
    };
    assert!(!of("grpc-status-details-bin").is_empty(), "{text}");
    End {
        code: code.to_owned(),
        message: of("grpc-message"),
    }
}
