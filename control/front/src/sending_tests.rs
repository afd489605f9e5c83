//! Lists of every method in every protocol, and how much of a list is encoded before it is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use http_body_util::BodyExt;
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use proto_public::api::v2::{Labels, Meta, Token, TokenServiceListResponse};
use proto_public::{json, methods};
use tonic::{Code, Response as Answered};

use super::super::protocol::{Codec, WireProtocol};
use super::*;
use crate::listing::{EncodedItems, Items, Listing, listing, listing_encoded};
use crate::unsent_list::UNREAD_AFTER;

const TOKENS: &str = "/metalstack.api.v2.TokenService/List";

fn reply(framing: Framing, codec: Codec, compression: Compression) -> Reply {
    Reply {
        protocol: WireProtocol { framing, codec },
        compression,
    }
}

/// Every protocol and codec in which a list can be asked for.
fn replies() -> Vec<Reply> {
    use Codec::{Json, Proto};
    use Framing::{ConnectUnary, Grpc, GrpcWeb};
    let forms = [
        (ConnectUnary, Proto),
        (ConnectUnary, Json),
        (Grpc, Proto),
        (Grpc, Json),
        (GrpcWeb { text: false }, Proto),
        (GrpcWeb { text: false }, Json),
        (GrpcWeb { text: true }, Proto),
    ];
    let reply = |(framing, codec)| reply(framing, codec, Compression::Identity);
    forms.map(reply).to_vec()
}

fn caller(name: &str) -> ShareOwner {
    ShareOwner::Token(name.into())
}

fn answer(method: &'static Method, listing: Listing, rest: Vec<u8>) -> ListReply {
    let trailers = [("x-said", "later")].map(|(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, http::HeaderValue::from_static(value))
    });
    ListReply {
        method,
        message: ListMessage::new(listing, rest.into()),
        headers: HeaderMap::new(),
        trailers: trailers.into_iter().collect(),
        deadline: None,
    }
}

/// The response sent as it is read, however small.
async fn sent(lists: &OpenLists, reply: Reply, answer: ListReply) -> Response<ReplyBody> {
    let place = lists.place(caller("a")).unwrap();
    lists.send(reply, answer, place).await.unwrap()
}

async fn collected(response: Response<ReplyBody>) -> (HeaderMap, Vec<u8>, Option<HeaderMap>) {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned();
    (head.headers, body.to_bytes().to_vec(), trailers)
}

/// A message with something in each field, two levels deep.
fn sample(message: &MessageDescriptor, number: i32, depth: u32) -> DynamicMessage {
    let mut out = DynamicMessage::new(message.clone());
    for field in message.fields() {
        let other =
            |oneof: prost_reflect::OneofDescriptor| oneof.fields().next().as_ref() != Some(&field);
        let is_deep = depth == 0 && matches!(field.kind(), Kind::Message(_));
        if is_deep || field.containing_oneof().is_some_and(other) {
            continue;
        }
        let value = if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
            let value = value(&entry.map_entry_value_field(), number, depth);
            let key = match entry.map_entry_key_field().kind() {
                Kind::String => MapKey::String(format!("key {number}")),
                kind => panic!("a map of {kind:?}"),
            };
            Value::Map(HashMap::from([(key, value)]))
        } else if field.is_list() {
            let values = [number, number + 1].map(|number| value(&field, number, depth));
            Value::List(values.to_vec())
        } else {
            value(&field, number, depth)
        };
        out.set_field(&field, value);
    }
    out
}

fn value(field: &FieldDescriptor, number: i32, depth: u32) -> Value {
    match field.kind() {
        Kind::Bool => Value::Bool(true),
        Kind::Int32 => Value::I32(number),
        Kind::Int64 => Value::I64(number.into()),
        Kind::Uint32 => Value::U32(number.unsigned_abs()),
        Kind::Uint64 => Value::U64(number.unsigned_abs().into()),
        Kind::Float => Value::F32(1.5),
        Kind::Double => Value::F64(1.5),
        Kind::String => Value::String(format!("\"text\" \u{fc} {number}")),
        Kind::Bytes => Value::Bytes(number.to_be_bytes().to_vec().into()),
        Kind::Enum(_) => Value::EnumNumber(1),
        Kind::Message(message) => Value::Message(sample(&message, number, depth.max(1) - 1)),
        kind => panic!("a field of {kind:?}"),
    }
}

/// The list of a method's answer, if it has exactly one.
fn list_of(method: &Method) -> Option<(u32, MessageDescriptor)> {
    let mut lists = method
        .output
        .fields()
        .filter_map(|field| match field.kind() {
            Kind::Message(item) if field.is_list() => Some((field.number(), item)),
            _ => None,
        });
    let only = lists.next()?;
    lists.next().is_none().then_some(only)
}

fn sample_list(
    method: &Method,
    field: u32,
    item: &MessageDescriptor,
    count: i32,
) -> (Listing, Vec<u8>) {
    let items = (0..count).map(|number| sample(item, number, 2));
    let mut rest = sample(&method.output, 7, 2);
    rest.clear_field_by_number(field);
    let listing = Listing {
        field,
        items: Arc::new(items.collect::<EncodedItems>()),
    };
    (listing, rest.encode_to_vec())
}

#[tokio::test]
async fn a_list_that_is_sent_in_chunks_is_the_whole_message_in_every_protocol() {
    let lists = OpenLists::new();
    let mut seen = 0;
    for method in methods().iter().filter(|method| !method.server_streaming) {
        let Some((field, item)) = list_of(method) else {
            continue;
        };
        seen += 1;
        for (reply, count) in replies()
            .into_iter()
            .flat_map(|it| [(it, 0), (it, 1), (it, 60)])
        {
            let (listing, rest) = sample_list(method, field, &item, count);
            let whole = ListMessage::new(listing.clone(), rest.clone().into());
            let whole = whole.whole(usize::MAX).unwrap();
            let answered = answer(method, listing, rest);
            let trailers = answered.trailers.clone();
            let wanted = reply.unary(method, HeaderMap::new(), whole, trailers).await;
            let wanted = collected(wanted).await;
            let path = &method.path;
            // A handler leaves no list in an answer that has none.
            if count > 0 {
                let got = collected(sent(&lists, reply, answered).await).await;
                assert!(got == wanted, "{path} {reply:?} {count}");
            }
        }
    }
    assert!(seen > 40, "{seen}");
    assert_eq!(lists.places.taken(), 0);
}

#[tokio::test]
async fn a_list_of_many_chunks_is_the_whole_message() {
    let lists = OpenLists::new();
    let method = proto_public::method(TOKENS).unwrap();
    let (field, item) = list_of(method).unwrap();
    let (listing, rest) = sample_list(method, field, &item, 2000);
    let message = ListMessage::new(listing.clone(), rest.clone().into());
    assert_eq!(message.whole(WHOLE_BYTES_MAX), None);
    let whole = message.whole(usize::MAX).unwrap();
    for reply in replies() {
        let trailers = answer(method, listing.clone(), rest.clone()).trailers;
        let wanted = reply
            .unary(method, HeaderMap::new(), whole.clone(), trailers)
            .await;
        let answered = answer(method, listing.clone(), rest.clone());
        let got = lists.answer(reply, answered, caller("a")).await.unwrap();
        assert!(collected(got).await == collected(wanted).await, "{reply:?}");
    }
}

#[tokio::test]
async fn what_a_caller_wants_compressed_is_compressed_on_the_way() {
    let lists = OpenLists::new();
    let method = proto_public::method(TOKENS).unwrap();
    let (field, item) = list_of(method).unwrap();
    for codec in [Codec::Proto, Codec::Json] {
        let of = |compression| {
            let (listing, rest) = sample_list(method, field, &item, 2000);
            let reply = reply(Framing::ConnectUnary, codec, compression);
            sent(&lists, reply, answer(method, listing, rest))
        };
        let (_, plain, _) = collected(of(Compression::Identity).await).await;
        for compression in [Compression::Gzip, Compression::Zstd] {
            let (headers, packed, _) = collected(of(compression).await).await;
            assert_eq!(headers["content-encoding"], compression.name());
            assert!(packed.len() < plain.len() / 5, "{}", packed.len());
            let unpacked = compression.expand(&packed.into(), plain.len()).unwrap();
            assert_eq!(unpacked, plain);
        }
    }
    // A message of gRPC may always come as it is.
    let (listing, rest) = sample_list(method, field, &item, 2000);
    let zipped = reply(Framing::Grpc, Codec::Proto, Compression::Gzip);
    let (headers, body, _) =
        collected(sent(&lists, zipped, answer(method, listing, rest)).await).await;
    assert!(!headers.contains_key("grpc-encoding") && body[0] == 0);
}

/// Tokens of 20 KB, and how many of them were made so far.
fn counted_tokens(count: usize) -> (Listing, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let convert = move |number: &usize| {
        counter.fetch_add(1, Ordering::Relaxed);
        let labels = (0..64).map(|label| (format!("label-{label}"), "x".repeat(300)));
        Token {
            uuid: number.to_string(),
            meta: Some(Meta {
                labels: Some(Labels {
                    labels: labels.collect(),
                }),
                ..Meta::default()
            }),
            ..Token::default()
        }
    };
    let rows: Vec<usize> = (0..count).collect();
    let answered: Answered<TokenServiceListResponse> = listing(rows, convert).unwrap();
    (
        answered.extensions().get::<Listing>().unwrap().clone(),
        made,
    )
}

#[tokio::test]
async fn a_large_list_read_slowly_is_made_as_it_is_read() {
    const COUNT: usize = 2000;
    /// Most items in a chunk: each is about 20 KB in JSON, with the names of its fields.
    const CHUNK_ITEMS: usize = 4;
    let lists = OpenLists::new();
    let method = proto_public::method(TOKENS).unwrap();
    for reply in replies() {
        let (listing, made) = counted_tokens(COUNT);
        let answered = answer(method, listing, Vec::new());
        let response = lists.answer(reply, answered, caller("a")).await.unwrap();
        let began = made.load(Ordering::Relaxed);
        // gRPC tells the length of the message first: each item was made, measured and dropped.
        let measured = if reply.protocol.framing == Framing::ConnectUnary {
            0
        } else {
            COUNT
        };
        assert!(
            began <= measured + (WHOLE_BYTES_MAX >> 14),
            "{reply:?}: {began}"
        );
        let mut body = response.into_body();
        let (mut bytes, mut frames, mut before) = (0, 0, began);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.unwrap().into_data() else {
                continue;
            };
            let now = made.load(Ordering::Relaxed);
            assert!(now - before <= CHUNK_ITEMS, "{reply:?}: {}", now - before);
            assert!(data.len() <= 2 * CHUNK_BYTES, "{reply:?}: {}", data.len());
            (bytes, frames, before) = (bytes + data.len(), frames + 1, now);
        }
        assert!(
            bytes > COUNT * 64 * 300 && frames >= COUNT / CHUNK_ITEMS,
            "{reply:?}"
        );
        assert_eq!(made.load(Ordering::Relaxed), began + COUNT, "{reply:?}");
    }
}

async fn open(lists: &OpenLists, name: &str) -> Result<Response<ReplyBody>, Status> {
    let method = proto_public::method(TOKENS).unwrap();
    let (listing, _) = counted_tokens(20);
    let json = reply(Framing::ConnectUnary, Codec::Json, Compression::Identity);
    let answered = answer(method, listing, Vec::new());
    lists.answer(json, answered, caller(name)).await
}

#[tokio::test]
async fn a_caller_has_so_many_large_lists_on_their_way() {
    let lists = OpenLists::new();
    let mut unread = Vec::new();
    let refused = loop {
        match open(&lists, "a").await {
            Ok(response) => unread.push(response),
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(unread.len(), LISTS_EACH_MAX);
    assert!(open(&lists, "b").await.is_ok(), "another one has its own");
    // Read to the end, or given up.
    let read = unread.pop().unwrap();
    let (_, json, _) = collected(read).await;
    let method = proto_public::method(TOKENS).unwrap();
    let tokens = json::to_proto(&method.output, &json).unwrap();
    let tokens = TokenServiceListResponse::decode(&tokens[..])
        .unwrap()
        .tokens;
    assert_eq!((tokens.len(), tokens[19].uuid.as_str()), (20, "19"));
    unread.push(open(&lists, "a").await.unwrap());
    assert!(open(&lists, "a").await.is_err());
    drop(unread);
    assert_eq!(lists.places.taken(), 0);
    assert!(open(&lists, "a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_reads_gives_its_place_up() {
    let lists = OpenLists::new();
    let mut unread = Vec::new();
    while let Ok(response) = open(&lists, "a").await {
        unread.push(response.into_body());
    }
    tokio::time::advance(UNREAD_AFTER / 2).await;
    assert!(unread[0].frame().await.unwrap().is_ok());
    tokio::time::advance(UNREAD_AFTER / 2).await;
    assert!(open(&lists, "a").await.is_ok());
    assert_eq!(lists.places.taken(), 1, "the one that is read");
    assert!(unread[0].frame().await.unwrap().is_ok());
    assert!(unread[1].frame().await.unwrap().is_err());
    assert!(unread[1].frame().now_or_never().unwrap().is_none());
    tokio::time::advance(DEADLINE_MAX).await;
    assert!(
        unread[0].frame().await.unwrap().is_err(),
        "its deadline has passed"
    );
}

/// One item, of another length each time.
struct Growing(AtomicUsize);

impl Items for Growing {
    fn count(&self) -> usize {
        1
    }
    fn encoded_len(&self, _index: usize) -> usize {
        0
    }
    fn encode(&self, _index: usize, out: &mut Vec<u8>) {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        let uuid = "x".repeat(count);
        Token {
            uuid,
            ..Token::default()
        }
        .encode_raw(out);
    }
}

#[tokio::test]
async fn a_frame_with_another_length_than_its_head_tells_never_ends_well() {
    let lists = OpenLists::new();
    let method = proto_public::method(TOKENS).unwrap();
    let listing = Listing {
        field: 1,
        items: Arc::new(Growing(AtomicUsize::new(1))),
    };
    let grpc = reply(Framing::Grpc, Codec::Proto, Compression::Identity);
    let response = sent(&lists, grpc, answer(method, listing, Vec::new())).await;
    assert!(response.into_body().collect().await.is_err());
    let none: Answered<TokenServiceListResponse> =
        listing_encoded(EncodedItems::default()).unwrap();
    assert!(none.extensions().get::<Listing>().is_none());
}
