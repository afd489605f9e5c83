//! Proto bytes to JSON in one pass, without objects in between.
//!
//! What reflection does in two steps costs tens of times more: an object for each field of each
//! message. Here each message has a plan, made once from its descriptor, and bytes are written as
//! they are met.
//!
//! Invariant: the text is what reflection would write. Whatever one pass cannot do, or no encoder
//! of ours writes (fields out of order, a field twice, text that is not UTF-8), is [`Odd`], and
//! reflection does it all.

mod field;
mod form;
mod open;
mod plan;
mod text;
mod wire;

use std::fmt::Write as _;

use prost::Message as _;
use prost_reflect::MessageDescriptor;
use prost_types::{Duration, Timestamp};

use field::{Field, Key, Shape};
use form::{Form, Number};
use open::{Open, close};
use plan::{PLANS, Plan};
use wire::{Value, Wire};

/// Not for one pass.
#[derive(Debug)]
struct Odd;

type Written = Result<(), Odd>;

/// Messages within messages; prost reads 100.
const DEPTH_MAX: u32 = 90;
/// Entries of a map; each is compared with those before it, for a key may not come twice.
const ENTRIES_MAX: usize = 256;
/// Longest duration that JSON can tell, seconds.
const DURATION_S_MAX: i64 = 315_576_000_000;
const NANOS: i32 = 1_000_000_000;

/// The JSON of a message; `None` when reflection must do it.
pub(crate) fn json(message: &MessageDescriptor, bytes: &[u8]) -> Option<Vec<u8>> {
    let plan = PLANS.of(message.full_name())?;
    // Names and quotes make JSON more than twice as long.
    let mut out = Vec::with_capacity(bytes.len() * 5 / 2 + 64);
    write_message(plan, bytes, &mut out, 0).ok()?;
    Some(out)
}

fn write_message(plan: &Plan, bytes: &[u8], out: &mut Vec<u8>, depth: u32) -> Written {
    if depth > DEPTH_MAX {
        return Err(Odd);
    }
    out.push(b'{');
    let start = out.len();
    let mut fields = plan.fields.iter().peekable();
    let (mut last, mut open, mut oneofs) = (0, Open::None, 0u64);
    let mut wire = Wire(bytes);
    while let Some((number, value)) = wire.next()? {
        if number < last {
            return Err(Odd);
        }
        let is_again = number == last;
        if !is_again {
            close(&mut open, out);
            last = number;
        }
        while fields.next_if(|field| field.number < number).is_some() {}
        let Some(field) = fields.peek().filter(|field| field.number == number) else {
            // A field of a newer contract.
            continue;
        };
        match &field.shape {
            Shape::List => write_items(field, value, out, start, &mut open, depth)?,
            Shape::Map(key) => write_entry(field, *key, value, out, start, &mut open, depth)?,
            Shape::Implicit | Shape::Explicit if is_again => return Err(Odd),
            Shape::Implicit if is_default(&field.form, value) => {}
            Shape::Implicit | Shape::Explicit => {
                if let Some(oneof) = field.oneof {
                    let bit = 1u64.checked_shl(oneof).ok_or(Odd)?;
                    if oneofs & bit != 0 {
                        return Err(Odd);
                    }
                    oneofs |= bit;
                }
                write_name(field, out, start);
                write_value(&field.form, value, out, depth)?;
            }
        }
    }
    close(&mut open, out);
    out.push(b'}');
    Ok(())
}

/// Numbers that are 0, and texts that are empty. Messages are never left out.
fn is_default(form: &Form, value: Value<'_>) -> bool {
    match value {
        // Of numbers of 32 bits only those count.
        Value::Varint(bits) if form.is_short() => bits.trailing_zeros() >= 32,
        Value::Varint(bits) => form.is_number() && bits == 0,
        // The value of another type is none: who writes it refuses it.
        Value::Bytes(bytes) => !form.is_number() && bytes.is_empty(),
    }
}

fn write_name(field: &Field, out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.push(b',');
    }
    out.extend_from_slice(&field.name);
}

/// One item, or many in one piece.
fn write_items(
    field: &Field,
    value: Value<'_>,
    out: &mut Vec<u8>,
    start: usize,
    open: &mut Open,
    depth: u32,
) -> Written {
    let mut item = |value, out: &mut Vec<u8>| {
        if matches!(open, Open::List) {
            out.push(b',');
        } else {
            write_name(field, out, start);
            out.push(b'[');
            *open = Open::List;
        }
        write_value(&field.form, value, out, depth)
    };
    match value {
        Value::Bytes(bytes) if field.form.is_number() => {
            let mut packed = Wire(bytes);
            while !packed.0.is_empty() {
                item(Value::Varint(packed.varint()?), out)?;
            }
            Ok(())
        }
        value => item(value, out),
    }
}

fn write_entry(
    field: &Field,
    key: Key,
    value: Value<'_>,
    out: &mut Vec<u8>,
    start: usize,
    open: &mut Open,
    depth: u32,
) -> Written {
    let Value::Bytes(entry) = value else {
        return Err(Odd);
    };
    let (mut key_value, mut its_value) = (None, None);
    let mut wire = Wire(entry);
    while let Some((number, value)) = wire.next()? {
        let place = match number {
            1 => &mut key_value,
            2 => &mut its_value,
            _ => continue,
        };
        if place.replace(value).is_some() {
            return Err(Odd);
        }
    }
    if let Open::Map(keys) = open {
        if keys.len() >= ENTRIES_MAX {
            return Err(Odd);
        }
        out.push(b',');
    } else {
        write_name(field, out, start);
        out.push(b'{');
        *open = Open::Map(Vec::new());
    }
    let from = out.len();
    match (key, key_value) {
        (Key::Text, key) => write_text(key.unwrap_or(Value::Bytes(&[])), out)?,
        (Key::Number(form), key) => {
            out.push(b'"');
            write_number(form, key.unwrap_or(Value::Varint(0)), out)?;
            out.push(b'"');
        }
    }
    if let Open::Map(keys) = open {
        let written = (from, out.len());
        let is_there = |(a, b): &(usize, usize)| out[*a..*b] == out[written.0..written.1];
        if keys.iter().any(is_there) {
            return Err(Odd);
        }
        keys.push(written);
    }
    out.push(b':');
    let nothing = if field.form.is_number() {
        Value::Varint(0)
    } else {
        Value::Bytes(&[])
    };
    write_value(&field.form, its_value.unwrap_or(nothing), out, depth)
}

fn write_value(form: &Form, value: Value<'_>, out: &mut Vec<u8>, depth: u32) -> Written {
    match (form, value) {
        (Form::Text, value) => write_text(value, out),
        (Form::Number(number), value) if number.is_long() => {
            out.push(b'"');
            write_number(*number, value, out)?;
            out.push(b'"');
            Ok(())
        }
        (Form::Number(number), value) => write_number(*number, value, out),
        (Form::Enum(names), Value::Varint(number)) => {
            // As prost reads it: the low 32 bits.
            #[expect(clippy::cast_possible_truncation, reason = "prost does the same")]
            let number = number as i32;
            match names.get(number) {
                Some(name) => out.extend_from_slice(name),
                None => text::signed(number.into(), out),
            }
            Ok(())
        }
        (Form::Message(plan), Value::Bytes(bytes)) => {
            write_message(PLANS.at(*plan).ok_or(Odd)?, bytes, out, depth + 1)
        }
        (Form::Timestamp, Value::Bytes(bytes)) => {
            let time = Timestamp::decode(bytes).map_err(|_| Odd)?;
            text::time(&time, out)
        }
        (Form::Duration, Value::Bytes(bytes)) => {
            let time = Duration::decode(bytes).map_err(|_| Odd)?;
            let is_plain = (0..=DURATION_S_MAX).contains(&time.seconds);
            if !is_plain || !(0..NANOS).contains(&time.nanos) {
                return Err(Odd);
            }
            // Few messages have one.
            write!(Into(out), "\"{time}\"").map_err(|_| Odd)
        }
        _ => Err(Odd),
    }
}

fn write_number(form: Number, value: Value<'_>, out: &mut Vec<u8>) -> Written {
    let Value::Varint(bits) = value else {
        return Err(Odd);
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "prost takes the low bits too"
    )]
    match form {
        Number::Bool => {
            out.extend_from_slice(if bits == 0 { b"false" } else { b"true" });
        }
        Number::I32 => text::signed((bits as i32).into(), out),
        Number::U32 => text::number((bits as u32).into(), out),
        Number::I64 => text::signed(bits as i64, out),
        Number::U64 => text::number(bits, out),
    }
    Ok(())
}

fn write_text(value: Value<'_>, out: &mut Vec<u8>) -> Written {
    match value {
        Value::Bytes(bytes) => text::quote(bytes, out),
        Value::Varint(_) => Err(Odd),
    }
}

/// Writes what is `Display`.
struct Into<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Into<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
#[path = "transcode_tests.rs"]
mod tests;
