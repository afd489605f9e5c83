//! Every kind in every format, listed and watched.

use prost::Message;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value as It,
};
use prost_types::Any;

use super::*;
use crate::kinds::KINDS;

const REVISION: u64 = 27;
/// Deeper messages stay empty.
const DEPTH_MAX: usize = 4;

/// A message with something in every field.
fn sample(message: &MessageDescriptor, depth: usize) -> DynamicMessage {
    let mut made = DynamicMessage::new(message.clone());
    if depth == DEPTH_MAX {
        return made;
    }
    for field in message.fields() {
        let value = if field.is_map() {
            let entry = field.kind().as_message().unwrap().clone();
            let value = one(&entry.map_entry_value_field(), depth);
            let key = match entry.map_entry_key_field().kind() {
                Kind::String => MapKey::String("key".into()),
                _ => MapKey::I32(1),
            };
            It::Map([(key, value)].into())
        } else if field.is_list() {
            It::List(vec![one(&field, depth), one(&field, depth)])
        } else {
            one(&field, depth)
        };
        made.set_field(&field, value);
    }
    made
}

fn one(field: &FieldDescriptor, depth: usize) -> It {
    match field.kind() {
        Kind::Double => It::F64(1.0),
        Kind::Float => It::F32(1.0),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => It::I32(1),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => It::I64(1_700_000_000),
        Kind::Uint32 | Kind::Fixed32 => It::U32(1),
        Kind::Uint64 | Kind::Fixed64 => It::U64(4096),
        Kind::Bool => It::Bool(true),
        Kind::String => It::String(format!("a-{}", field.name())),
        Kind::Bytes => It::Bytes(vec![1, 2].into()),
        Kind::Enum(_) => It::EnumNumber(1),
        Kind::Message(message) => {
            // Dynamic JSON has no place in what people see.
            let is_any = message.full_name() == "google.protobuf.Any";
            It::Message(sample(&message, if is_any { DEPTH_MAX } else { depth + 1 }))
        }
    }
}

fn change(known: &ObjectKind, r#type: WatchChangeType) -> WatchChange {
    let descriptor = proto_public::message(known.message).unwrap();
    WatchChange {
        r#type: r#type.into(),
        kind: known.name.to_owned(),
        id: "the-id".to_owned(),
        revision: REVISION,
        object: Some(Any {
            type_url: format!("type.googleapis.com/{}", known.message),
            value: sample(&descriptor, 0).encode_to_vec(),
        }),
    }
}

fn listing(
    known: &'static ObjectKind,
    format: &str,
    there: &[WatchChange],
    is_one: bool,
) -> String {
    let format = format.parse().unwrap();
    let mut view = ObjectView::new(&format, known);
    view.listing(there, is_one, false).unwrap()
}

/// Fields of a sample of the kind as JSON has them, with the revision: of those that exclude each
/// other the last.
fn fields(known: &ObjectKind) -> Vec<String> {
    let descriptor = proto_public::message(known.message).unwrap();
    let is_set = |field: &FieldDescriptor| {
        let last = field
            .containing_oneof()
            .and_then(|oneof| oneof.fields().last());
        last.is_none_or(|last| last == *field)
    };
    let names = descriptor.fields().filter(is_set);
    let names = names.map(|field| match field.json_name() {
        "revision" => "ownRevision".to_owned(),
        other => other.to_owned(),
    });
    let mut names: Vec<String> = names.chain(["revision".to_owned()]).collect();
    names.sort();
    names
}

fn columns(titles: &[&'static str]) -> Vec<String> {
    titles.iter().map(|title| title.to_uppercase()).collect()
}

/// Whether a table's first line is these titles, in order.
fn has_titles(line: &str, titles: &[String]) -> bool {
    let mut rest = line;
    titles.iter().all(|title| {
        let found = rest.strip_prefix(title.as_str());
        rest = found.unwrap_or(rest).trim_start();
        found.is_some()
    }) && rest.is_empty()
}

#[test]
fn tables_of_every_kind() {
    use WatchChangeType::Present;
    for known in KINDS {
        let two = [change(known, Present), change(known, Present)];
        for (format, wide) in [("table", false), ("wide", true)] {
            let mut titles = columns(&(known.titles)(wide));
            titles.extend(wide.then(|| "REVISION".to_owned()));
            let text = listing(known, format, &two, false);
            let lines: Vec<&str> = text.lines().collect();
            assert!(has_titles(lines[0], &titles), "{}: {text}", known.name);
            assert_eq!(lines.len(), 3, "{}: {text}", known.name);
            assert_eq!(lines[1], lines[2], "{}", known.name);
            assert_eq!(lines[1].ends_with("  27"), wide, "{}: {text}", known.name);
            assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
            let none = listing(known, format, &[], false);
            assert!(
                has_titles(none.trim_end(), &titles),
                "{}: {none}",
                known.name
            );
        }
    }
}

#[test]
fn documents_of_every_kind() {
    for known in KINDS {
        let one = [change(known, WatchChangeType::Present)];
        let json = listing(known, "json", &one, true);
        assert!(json.ends_with("}\n"), "{}: {json}", known.name);
        let json: Value = serde_json::from_str(&json).unwrap();
        let names: Vec<String> = json.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, fields(known), "{}", known.name);
        let yaml: Value = serde_norway::from_str(&listing(known, "yaml", &one, true)).unwrap();
        assert_eq!(yaml, json, "{}", known.name);
        for format in ["json", "yaml"] {
            let many = listing(known, format, &one, false);
            let many: Value = serde_norway::from_str(&many).unwrap();
            assert_eq!(many, json!([json]), "{}", known.name);
            let none: Value = serde_norway::from_str(&listing(known, format, &[], false)).unwrap();
            assert_eq!(none, json!([]), "{}", known.name);
        }
        let picked = format!("jsonpath={{.revision}} {{.{}}}", fields(known)[0]);
        let two = [one[0].clone(), one[0].clone()];
        let text = listing(known, &picked, &two, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{}: {text}", known.name);
        assert!(lines[0].starts_with("27 "), "{}: {text}", known.name);
        assert!(lines[0].len() > 3, "{}: {text}", known.name);
        assert_eq!(
            listing(known, &picked, &two[..1], true),
            format!("{}\n", lines[0])
        );
        assert_eq!(listing(known, &picked, &[], false), "");
    }
}

/// What a stream shows: one present object, then each change.
fn stream(known: &'static ObjectKind, format: &str) -> Vec<String> {
    use WatchChangeType::{Changed, Created, Deleted, Present};
    let format = format.parse().unwrap();
    let mut view = ObjectView::new(&format, known);
    let there = [change(known, Present)];
    let mut shown = vec![view.listing(&there, false, true).unwrap()];
    for r#type in [Created, Changed, Deleted] {
        shown.push(view.change(&change(known, r#type)).unwrap());
    }
    // It went while the server was away.
    let gone = WatchChange {
        object: None,
        ..change(known, Deleted)
    };
    shown.push(view.change(&gone).unwrap());
    shown
}

const EVENTS: [&str; 5] = ["present", "created", "changed", "deleted", "deleted"];

#[test]
fn watches_of_every_kind_in_tables() {
    for known in KINDS {
        for (format, wide) in [("table", false), ("wide", true)] {
            let shown = stream(known, format).concat();
            let lines: Vec<&str> = shown.lines().collect();
            let mut titles = vec!["EVENT".to_owned()];
            titles.extend(columns(&(known.titles)(wide)));
            titles.extend(wide.then(|| "REVISION".to_owned()));
            assert!(has_titles(lines[0], &titles), "{}: {shown}", known.name);
            assert_eq!(lines.len(), 6, "{}: {shown}", known.name);
            for (line, event) in lines[1..].iter().zip(EVENTS) {
                assert!(
                    line.starts_with(&format!("{event}  ")),
                    "{}: {line}",
                    known.name
                );
                assert_eq!(line.ends_with("  27"), wide, "{}: {line}", known.name);
            }
            assert!(
                lines[5].contains("  the-id "),
                "{}: {}",
                known.name,
                lines[5]
            );
            let second = |line: &str| line.find(titles[1].as_str());
            assert_eq!(second(lines[0]), Some(9), "{}: {shown}", known.name);
        }
    }
}

#[test]
fn watches_of_every_kind_in_documents() {
    for known in KINDS {
        let lines = stream(known, "json");
        let documents = stream(known, "yaml");
        let picked = stream(known, "jsonpath={.revision}");
        assert_eq!(picked, ["27\n"; 5], "{}", known.name);
        for ((line, document), event) in lines.iter().zip(&documents).zip(EVENTS) {
            assert_eq!(line.matches('\n').count(), 1, "{}: {line}", known.name);
            let json: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| json[name].as_str().unwrap().to_owned();
            assert_eq!(
                [text("event"), text("kind"), text("id")],
                [event, known.name, "the-id"]
            );
            assert_eq!(json["revision"], REVISION);
            assert_eq!(json["object"]["revision"], REVISION);
            let yaml = document.strip_prefix("---\n").unwrap();
            let yaml: Value = serde_norway::from_str(yaml).unwrap();
            assert_eq!(yaml, json, "{}", known.name);
        }
        let gone: Value = serde_json::from_str(&lines[4]).unwrap();
        assert_eq!(
            gone["object"],
            json!({ "id": "the-id", "revision": REVISION })
        );
    }
}
