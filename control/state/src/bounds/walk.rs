//! The walk over a command's fields: a serializer that checks bounds and writes nothing.

use std::fmt;

use proto_errors::Error;
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{BYTES_MAX, list_max, text_max};

/// The path of fields to the current value.
#[derive(Debug, Default)]
pub(super) struct Walk {
    fields: Vec<&'static str>,
    /// Elements so far of the lists around the value, the innermost last.
    counts: Vec<usize>,
}

/// The refusal of a value beyond its bound.
#[derive(Debug)]
pub(super) struct Exceeded(Error);

impl Exceeded {
    pub(super) fn into_error(self) -> Error {
        self.0
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Exceeded {}

impl serde::ser::Error for Exceeded {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Error::invalid("command", message))
    }
}

type Step = Result<(), Exceeded>;

impl Walk {
    fn field(&self) -> &'static str {
        self.fields.last().copied().unwrap_or_default()
    }

    fn check(&self, count: usize, max: usize, what: &str) -> Step {
        if count <= max {
            return Ok(());
        }
        let rule = format!("must have at most {max} {what}");
        Err(Exceeded(Error::invalid(&self.fields.join("."), rule)))
    }

    fn enter<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Step {
        self.fields.push(field);
        value.serialize(&mut *self)?;
        self.fields.pop();
        Ok(())
    }

    /// Counts an element of the innermost list. Counted one by one: the length that serde announces
    /// is optional.
    fn count(&mut self) -> Step {
        let max = list_max(self.field());
        let Some(count) = self.counts.last_mut() else {
            return Ok(());
        };
        *count += 1;
        let count = *count;
        self.check(count, max, "entries")
    }

    fn begin(&mut self) -> &mut Self {
        self.counts.push(0);
        self
    }

    fn end(&mut self) -> Step {
        self.counts.pop();
        Ok(())
    }
}

macro_rules! plain {
    ($($method:ident $type:ty;)*) => {
        $(fn $method(self, _value: $type) -> Step {
            Ok(())
        })*
    };
}

impl Serializer for &mut Walk {
    type Ok = ();
    type Error = Exceeded;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain! {
        serialize_bool bool;
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
        serialize_f32 f32;
        serialize_f64 f64;
        serialize_char char;
    }

    fn serialize_str(self, text: &str) -> Step {
        self.check(text.len(), text_max(self.field()), "bytes")
    }
    fn serialize_bytes(self, bytes: &[u8]) -> Step {
        self.check(bytes.len(), BYTES_MAX, "bytes")
    }
    fn serialize_none(self) -> Step {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Step {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Step {
        Ok(())
    }
    fn serialize_unit_struct(self, _name: &'static str) -> Step {
        Ok(())
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Step {
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Step {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Step {
        value.serialize(self)
    }
    fn serialize_seq(self, _len: Option<usize>) -> Result<Self, Exceeded> {
        Ok(self.begin())
    }
    fn serialize_tuple(self, _len: usize) -> Result<Self, Exceeded> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Exceeded> {
        Ok(self)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Exceeded> {
        Ok(self)
    }
    fn serialize_map(self, _len: Option<usize>) -> Result<Self, Exceeded> {
        Ok(self.begin())
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Exceeded> {
        Ok(self)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Exceeded> {
        Ok(self)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

impl SerializeSeq for &mut Walk {
    type Ok = ();
    type Error = Exceeded;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Step {
        self.count()?;
        value.serialize(&mut **self)
    }
    fn end(self) -> Step {
        Walk::end(self)
    }
}

impl SerializeMap for &mut Walk {
    type Ok = ();
    type Error = Exceeded;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Step {
        self.count()?;
        key.serialize(&mut **self)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Step {
        value.serialize(&mut **self)
    }
    fn end(self) -> Step {
        Walk::end(self)
    }
}

macro_rules! tuples {
    ($($which:ident $method:ident;)*) => {
        $(impl $which for &mut Walk {
            type Ok = ();
            type Error = Exceeded;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Step {
                value.serialize(&mut **self)
            }
            fn end(self) -> Step {
                Ok(())
            }
        })*
    };
}

tuples! {
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! structs {
    ($($which:ident)*) => {
        $(impl $which for &mut Walk {
            type Ok = ();
            type Error = Exceeded;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                field: &'static str,
                value: &T,
            ) -> Step {
                self.enter(field, value)
            }
            fn end(self) -> Step {
                Ok(())
            }
        })*
    };
}

structs! {
    SerializeStruct SerializeStructVariant
}
