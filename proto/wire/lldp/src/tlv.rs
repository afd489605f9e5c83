//! The TLVs that a frame consists of: seven bits of type, nine bits of length, and a value.

use crate::frame::DecodeError;

/// Type of the TLV after which a reader stops.
pub(crate) const TLV_END: u8 = 0;
/// Longest value, bytes: its length has nine bits. Of a longer value only the first 511 are
/// written.
const VALUE_MAX: usize = 511;

/// One TLV.
#[derive(Debug)]
pub(crate) struct Tlv<'a> {
    pub(crate) kind: u8,
    pub(crate) value: &'a [u8],
    /// The bytes after it.
    pub(crate) rest: &'a [u8],
}

/// Reads the next TLV. `None` means the end TLV, or the end of the bytes where the sender left it
/// out.
pub(crate) fn next_tlv(bytes: &[u8]) -> Result<Option<Tlv<'_>>, DecodeError> {
    let [first, second, rest @ ..] = bytes else {
        return if bytes.is_empty() {
            Ok(None)
        } else {
            Err(DecodeError::Truncated)
        };
    };
    let kind = first >> 1;
    if kind == TLV_END {
        return Ok(None);
    }
    let length = (usize::from(first & 1) << 8) | usize::from(*second);
    let (value, rest) = rest
        .split_at_checked(length)
        .ok_or(DecodeError::Truncated)?;
    Ok(Some(Tlv { kind, value, rest }))
}

/// Appends a TLV.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    let value = value.get(..VALUE_MAX).unwrap_or(value);
    let length = u16::try_from(value.len()).unwrap_or(0);
    out.extend_from_slice(&((u16::from(kind) << 9) | length).to_be_bytes());
    out.extend_from_slice(value);
}
