use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use super::json;
use crate::json::{decode, print};

/// Random numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn text(&mut self) -> String {
        let texts = ["", "a", "\"quoted\" \\ \n\t\u{1}", "größer 東京 🦀", "<&>/"];
        texts[usize::try_from(self.roll(5)).unwrap()].to_owned()
    }

    fn number(&mut self) -> u64 {
        let edges = [0, 1, 127, 128, 1 << 31, u64::MAX, 1 << 53];
        edges[usize::try_from(self.roll(7)).unwrap()]
    }

    fn value(&mut self, kind: &Kind, depth: u32) -> Option<Value> {
        let number = self.number();
        Some(match kind {
            Kind::String => Value::String(self.text()),
            Kind::Bool => Value::Bool(number % 2 == 1),
            Kind::Int32 => Value::I32(number as i32),
            Kind::Uint32 => Value::U32(number as u32),
            Kind::Int64 => Value::I64(number as i64),
            Kind::Uint64 => Value::U64(number),
            Kind::Enum(_) => Value::EnumNumber(self.roll(6) as i32 - 1),
            Kind::Message(of) if of.full_name() == "google.protobuf.Any" => return None,
            Kind::Message(of) => Value::Message(self.message(of, depth + 1)),
            Kind::Bytes => Value::Bytes(self.text().into_bytes().into()),
            Kind::Float => Value::F32(1.5),
            _ => return None,
        })
    }

    fn field(&mut self, field: &FieldDescriptor, depth: u32) -> Option<Value> {
        let kind = field.kind();
        if let Some(entry) = kind.as_message().filter(|_| field.is_map()) {
            let of = entry.map_entry_value_field().kind();
            let (count, mut map) = (self.roll(3), std::collections::HashMap::new());
            for number in 0..count {
                let key = match entry.map_entry_key_field().kind() {
                    Kind::String => MapKey::String(format!("{}{number}", self.text())),
                    _ => return None,
                };
                map.insert(key, self.value(&of, depth)?);
            }
            return Some(Value::Map(map));
        }
        if field.is_list() {
            let count = self.roll(4);
            let items: Option<_> = (0..count).map(|_| self.value(&kind, depth)).collect();
            return Some(Value::List(items?));
        }
        self.value(&kind, depth)
    }

    fn message(&mut self, of: &MessageDescriptor, depth: u32) -> DynamicMessage {
        let mut message = DynamicMessage::new(of.clone());
        match of.full_name() {
            "google.protobuf.Timestamp" | "google.protobuf.Duration" => {
                let seconds = [0, 1, 1_700_000_000, 86_399, 951_782_400, -1][self.roll(6) as usize];
                let nanos = [0, 1, 500_000_000, 999_999_999, 1000][self.roll(5) as usize];
                message.set_field_by_number(1, Value::I64(seconds));
                message.set_field_by_number(2, Value::I32(if seconds < 0 { 0 } else { nanos }));
            }
            _ => {
                for field in of.fields() {
                    let is_set = self.roll(4) > 0 && depth < 6;
                    if let Some(value) = is_set.then(|| self.field(&field, depth)).flatten() {
                        message.set_field(&field, value);
                    }
                }
            }
        }
        message
    }
}

fn messages() -> Vec<MessageDescriptor> {
    let all = crate::methods().iter();
    all.flat_map(|it| [it.input.clone(), it.output.clone()])
        .collect()
}

#[test]
fn every_message_is_written_as_reflection_writes_it() {
    let mut dice = Dice(42);
    let (mut fast, mut all) = (0, 0);
    for message in messages() {
        for _ in 0..40 {
            let bytes = dice.message(&message, 0).encode_to_vec();
            all += 1;
            let Some(text) = json(&message, &bytes) else {
                continue;
            };
            fast += 1;
            let wanted = print(&decode(&message, &bytes).unwrap()).unwrap();
            // Entries of a map have no order.
            let [text, wanted]: [serde_json::Value; 2] =
                [text, wanted].map(|it| serde_json::from_slice(&it).unwrap());
            assert_eq!(text, wanted, "{}", message.full_name());
        }
    }
    assert!(fast * 10 > all * 8, "{fast} of {all} in one pass");
}

#[test]
fn fields_and_their_order_are_those_of_reflection() {
    let message = crate::message("metalstack.api.v2.MachineServiceCreateRequest").unwrap();
    let mut dice = Dice(7);
    for _ in 0..100 {
        let mut made = dice.message(&message, 0);
        for map in ["labels", "placement_labels"] {
            made.clear_field_by_name(map);
        }
        let bytes = made.encode_to_vec();
        let wanted = print(&decode(&message, &bytes).unwrap()).unwrap();
        if let Some(text) = json(&message, &bytes) {
            assert_eq!(text, wanted);
        }
    }
}

#[test]
fn what_no_encoder_of_ours_writes_is_left_to_reflection() {
    let message = crate::message("metalstack.api.v2.MachineServiceCreateRequest").unwrap();
    let (project, uuid) = (b"\x0a\x01p", b"\x12\x01u");
    let text = json(&message, &[&project[..], uuid].concat()).unwrap();
    assert_eq!(text, br#"{"project":"p","uuid":"u"}"#);
    for odd in [
        [&uuid[..], project].concat(),
        [&project[..], project].concat(),
        b"\x0a\x01\xff".to_vec(),
        b"\x0a\x05p".to_vec(),
        b"\x0a".to_vec(),
        b"\x0b".to_vec(),
        vec![0xff; 11],
        // The number of a field that is larger than any.
        b"\x82\x80\x80\x80\x20\x00".to_vec(),
    ] {
        assert!(json(&message, &odd).is_none(), "{odd:?}");
    }
    // Nothing in the place of a number, and 0 in that of a text.
    let key = crate::message("metalstack.admin.v2.VPNServiceAuthKeyRequest").unwrap();
    for odd in [&b"\x0a\x01p\x12\x00"[..], b"\x08\x00"] {
        assert!(json(&key, odd).is_none(), "{odd:?}");
    }
    // An entry that comes twice, and a message that has no end.
    let labels = crate::message("metalstack.api.v2.Labels").unwrap();
    let entry = b"\x0a\x06\x0a\x01k\x12\x01v";
    assert!(json(&labels, entry).is_some());
    assert!(json(&labels, &[&entry[..], entry].concat()).is_none());
}

#[test]
fn fields_of_a_newer_contract_are_left_out() {
    let labels = crate::message("metalstack.api.v2.Labels").unwrap();
    assert_eq!(json(&labels, b"\xa2\x06\x01x").unwrap(), b"{}");
}

#[test]
fn random_bytes_end_as_reflection_says() {
    let mut dice = Dice(3);
    for message in messages() {
        for _ in 0..20 {
            let mut bytes = dice.message(&message, 0).encode_to_vec();
            if bytes.is_empty() {
                continue;
            }
            let at = usize::try_from(dice.roll(bytes.len() as u64)).unwrap();
            bytes[at] = dice.roll(256) as u8;
            let Some(text) = json(&message, &bytes) else {
                continue;
            };
            let wanted = decode(&message, &bytes).map(|it| print(&it).unwrap());
            let wanted = wanted
                .unwrap_or_else(|error| panic!("{}: {error}: {bytes:?}", message.full_name()));
            let [text, wanted]: [serde_json::Value; 2] =
                [text, wanted].map(|it| serde_json::from_slice(&it).unwrap());
            assert_eq!(text, wanted, "{}: {bytes:?}", message.full_name());
        }
    }
}
