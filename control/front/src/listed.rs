//! Encodes a list in the codec of its caller: the fields before it, each item, the fields after it.
//!
//! Invariant: the concatenated parts equal the encoding of the whole message.

use bytes::{Buf, Bytes};
use prost::encoding::{
    DecodeContext, WireType, decode_key, encode_key, encode_varint, encoded_len_varint, key_len,
    skip_field,
};
use prost_reflect::{Kind, MessageDescriptor};
use proto_public::{Method, json};
use tonic::Status;

use super::protocol::Codec;
use super::reply::encode;
use crate::listing::Listing;

/// The message of a handler and its list, protobuf.
#[derive(Debug)]
pub(super) struct ListMessage {
    /// Fields with lower numbers than that of the list.
    before: Bytes,
    listing: Listing,
    /// Fields with higher numbers.
    after: Bytes,
}

impl ListMessage {
    /// Combines a list with the message that has the other fields.
    pub(super) fn new(listing: Listing, mut message: Bytes) -> Self {
        let mut rest = message.clone();
        let mut at = 0;
        while rest.has_remaining() {
            let skipped = decode_key(&mut rest).and_then(|(number, wire_type)| {
                let is_before = number < listing.field;
                skip_field(wire_type, number, &mut rest, DecodeContext::default())?;
                Ok(is_before)
            });
            // Prost writes the fields in the order of their numbers.
            if !skipped.is_ok_and(|is_before| is_before) {
                break;
            }
            at = message.len() - rest.remaining();
        }
        let after = message.split_off(at);
        Self {
            before: message,
            listing,
            after,
        }
    }

    /// The whole message. `None` if it exceeds `bytes_max` bytes.
    pub(super) fn whole(&self, bytes_max: usize) -> Option<Bytes> {
        let (mut out, mut item) = (self.before.to_vec(), Vec::new());
        for index in 0..self.listing.items.count() {
            item.clear();
            self.listing.items.encode(index, &mut item);
            put_item(self.listing.field, &item, &mut out);
            if out.len() + self.after.len() > bytes_max {
                return None;
            }
        }
        out.extend_from_slice(&self.after);
        Some(out.into())
    }

    /// The list in a codec.
    ///
    /// # Errors
    /// `internal` if the answer has no such list, or cannot be written as JSON.
    pub(super) fn written(self, codec: Codec, method: &Method) -> Result<WrittenList, Status> {
        let field = method.output.get_field(self.listing.field);
        let named = field.and_then(|field| match field.kind() {
            Kind::Message(item) if field.is_list() => Some((field, item)),
            _ => None,
        });
        let (field, item) = named.ok_or_else(|| Status::internal("the answer has no such list"))?;
        let (before, after) = match codec {
            Codec::Proto => (self.before, self.after),
            Codec::Json => {
                let before = fields(&encode(codec, method, self.before)?);
                let after = fields(&encode(codec, method, self.after)?);
                let name = serde_json::Value::from(field.json_name()).to_string();
                let comma = |fields: &[u8]| if fields.is_empty() { "" } else { "," };
                let before = [
                    b"{",
                    &before[..],
                    comma(&before).as_bytes(),
                    name.as_bytes(),
                    b":[",
                ];
                let after = [b"]", comma(&after).as_bytes(), &after[..], b"}"];
                (before.concat().into(), after.concat().into())
            }
        };
        Ok(WrittenList {
            codec,
            before,
            listing: self.listing,
            item,
            after,
            scratch: Vec::new(),
        })
    }
}

/// The members of a JSON object, without its braces.
fn fields(object: &Bytes) -> Bytes {
    object.slice(1..object.len().saturating_sub(1).max(1))
}

fn put_item(field: u32, item: &[u8], out: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(item.len() as u64, out);
    out.extend_from_slice(item);
}

/// A list in the codec of its caller.
#[derive(Debug)]
pub(super) struct WrittenList {
    codec: Codec,
    /// The bytes before the first item.
    pub(super) before: Bytes,
    listing: Listing,
    item: MessageDescriptor,
    /// The bytes after the last item.
    pub(super) after: Bytes,
    /// The item that is being written, protobuf.
    scratch: Vec<u8>,
}

impl WrittenList {
    /// Number of items.
    pub(super) fn count(&self) -> usize {
        self.listing.items.count()
    }

    /// Appends an item and its separator.
    ///
    /// # Errors
    /// `internal` if it cannot be written as JSON.
    pub(super) fn put(&mut self, index: usize, out: &mut Vec<u8>) -> Result<(), Status> {
        self.scratch.clear();
        self.listing.items.encode(index, &mut self.scratch);
        match self.codec {
            Codec::Proto => put_item(self.listing.field, &self.scratch, out),
            Codec::Json => {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(&self.json()?);
            }
        }
        Ok(())
    }

    /// Bytes that [`WrittenList::put`] appends.
    ///
    /// # Errors
    /// As `put`.
    pub(super) fn len_of(&mut self, index: usize) -> Result<usize, Status> {
        match self.codec {
            Codec::Proto => {
                let len = self.listing.items.encoded_len(index);
                Ok(key_len(self.listing.field) + encoded_len_varint(len as u64) + len)
            }
            Codec::Json => {
                self.scratch.clear();
                self.listing.items.encode(index, &mut self.scratch);
                Ok(usize::from(index > 0) + self.json()?.len())
            }
        }
    }

    fn json(&self) -> Result<Vec<u8>, Status> {
        json::from_proto(&self.item, &self.scratch)
            .map_err(|_| Status::internal("the answer cannot be written as JSON"))
    }
}
