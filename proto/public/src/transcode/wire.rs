//! The protobuf wire format: field numbers and values.

use super::Odd;

/// The value of a field on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
}

/// The rest of a message.
#[derive(Debug)]
pub(super) struct Wire<'a>(pub(super) &'a [u8]);

impl<'a> Wire<'a> {
    /// The next field. `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Odd> {
        if self.0.is_empty() {
            return Ok(None);
        }
        // A larger one is refused by prost, too.
        let tag = u32::try_from(self.varint()?).map_err(|_| Odd)?;
        let number = tag >> 3;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| Odd)?;
                let (bytes, rest) = self.0.split_at_checked(len).ok_or(Odd)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            _ => return Err(Odd),
        };
        if number == 0 {
            return Err(Odd);
        }
        Ok(Some((number, value)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, Odd> {
        // Fast path: most tags and lengths have one byte.
        if let [byte @ 0..=0x7f, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        let mut value = 0u64;
        for (at, byte) in self.0.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if at == 9 && bits > 1 {
                return Err(Odd);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(Odd)
    }
}
