//! Frames on a stream: kind (1 byte), length (4, big endian), payload.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::limits::{END_LEN_MAX, HEADER_LEN_MAX};
use crate::status::{Code, LinkStatus};

/// Version of the framing, the first byte of a header and of a hello.
pub const VERSION: u8 = 1;
/// Longest hello that a client reads, bytes. Servers send two; the rest is for later extensions.
pub const HELLO_LEN_MAX: usize = 16;
/// Bit of a hello's second byte: the server permits several calls on one stream. Older servers send
/// no second byte.
pub const KEEPS_STREAMS: u8 = 1;
/// Bytes before the payload.
pub const PREFIX_LEN: usize = 5;

/// The kind of a frame, its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Begins a call.
    Header = 1,
    /// A prost message.
    Message = 2,
    /// Ends an answer.
    End = 3,
}

/// The first frame of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// `/package.Service/Method`
    pub method: &'a str,
    /// Milliseconds until the caller's deadline. 0 means no deadline for a stream, and
    /// [`CALL_TIME_MAX`](crate::limits::CALL_TIME_MAX) for a unary call.
    pub deadline_ms: u32,
}

/// The reason why bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Shorter than its fixed part.
    #[error("frame is cut short")]
    Short,
    /// Longer than allowed.
    #[error("frame is {len} bytes, {max} are allowed")]
    TooLong {
        /// Length in the frame's prefix, bytes.
        len: usize,
        /// Allowed length, bytes.
        max: usize,
    },
    /// Unknown kind.
    #[error("unknown frame kind")]
    Kind,
    /// A frame of another kind was expected.
    #[error("unexpected frame kind")]
    Unexpected,
    /// The other side uses another version of the framing.
    #[error("unknown framing version")]
    Version,
    /// Text is not UTF-8, or a method path has characters that no path has.
    #[error("malformed text in a frame")]
    Text,
    /// The stream broke.
    #[error("stream ended inside a frame")]
    Broken,
}

impl From<FrameError> for LinkStatus {
    fn from(e: FrameError) -> Self {
        let code = match e {
            FrameError::TooLong { .. } => Code::ResourceExhausted,
            FrameError::Broken => Code::Unavailable,
            FrameError::Version => Code::Unimplemented,
            _ => Code::InvalidArgument,
        };
        Self::new(code, e.to_string())
    }
}

/// Decodes a prefix to kind and payload length, without judging the length.
pub fn decode_prefix(prefix: [u8; PREFIX_LEN]) -> Result<(Kind, usize), FrameError> {
    let [kind, a, b, c, d] = prefix;
    let kind = match kind {
        1 => Kind::Header,
        2 => Kind::Message,
        3 => Kind::End,
        _ => return Err(FrameError::Kind),
    };
    let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    Ok((kind, len))
}

/// Decodes the payload of a header frame.
pub fn decode_header(payload: &[u8]) -> Result<Header<'_>, FrameError> {
    if payload.len() > HEADER_LEN_MAX {
        return Err(FrameError::TooLong {
            len: payload.len(),
            max: HEADER_LEN_MAX,
        });
    }
    let [version, a, b, c, d, path @ ..] = payload else {
        return Err(FrameError::Short);
    };
    if *version != VERSION {
        return Err(FrameError::Version);
    }
    let method = std::str::from_utf8(path).map_err(|_| FrameError::Text)?;
    // The path goes into logs and refusals; control characters of a hostile caller must not.
    let ok = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_');
    if !method.starts_with('/') || !method.bytes().all(ok) {
        return Err(FrameError::Text);
    }
    Ok(Header {
        method,
        deadline_ms: u32::from_be_bytes([*a, *b, *c, *d]),
    })
}

/// Decodes the payload of an end frame. The inner `Ok(())` means that the call succeeded.
pub fn decode_end(payload: &[u8]) -> Result<Result<(), LinkStatus>, FrameError> {
    if payload.len() > END_LEN_MAX {
        return Err(FrameError::TooLong {
            len: payload.len(),
            max: END_LEN_MAX,
        });
    }
    let [code, a, b, message @ ..] = payload else {
        return Err(FrameError::Short);
    };
    if *code == 0 {
        return Ok(Ok(()));
    }
    let message = std::str::from_utf8(message).map_err(|_| FrameError::Text)?;
    let catalogue = u16::from_be_bytes([*a, *b]);
    Ok(Err(
        LinkStatus::new(Code::from_u8(*code), message).with_catalogue(catalogue)
    ))
}

/// Encodes a header frame.
pub fn encode_header(header: &Header<'_>) -> Result<Bytes, FrameError> {
    let len = 5 + header.method.len();
    if len > HEADER_LEN_MAX {
        return Err(FrameError::TooLong {
            len,
            max: HEADER_LEN_MAX,
        });
    }
    let mut out = BytesMut::with_capacity(PREFIX_LEN + len);
    put_prefix(&mut out, Kind::Header, len);
    out.put_u8(VERSION);
    out.put_u32(header.deadline_ms);
    out.put_slice(header.method.as_bytes());
    Ok(out.freeze())
}

/// Encodes a message frame of at most `max` bytes.
pub fn encode_message(message: &impl prost::Message, max: usize) -> Result<Bytes, FrameError> {
    let len = message.encoded_len();
    if len > max {
        return Err(FrameError::TooLong { len, max });
    }
    let mut out = BytesMut::with_capacity(PREFIX_LEN + len);
    put_prefix(&mut out, Kind::Message, len);
    // `BytesMut` grows as needed, so that encoding cannot fail for lack of room.
    message.encode(&mut out).map_err(|_| FrameError::Short)?;
    Ok(out.freeze())
}

/// The end frame of a successful call: code 0, no catalogue number, no message. Static, because
/// nearly every call ends with it.
const GOOD_END: [u8; PREFIX_LEN + 3] = [Kind::End as u8, 0, 0, 0, 3, 0, 0, 0];

/// Encodes an end frame. A message beyond [`END_LEN_MAX`] is cut at a character boundary.
pub fn encode_end(end: &Result<(), LinkStatus>) -> Bytes {
    let Err(status) = end else {
        return Bytes::from_static(&GOOD_END);
    };
    let message = status.message();
    // The other side refuses text that is not UTF-8: a cut inside a character would hide the reason
    // behind a protocol error.
    let message = &message[..message.floor_char_boundary(END_LEN_MAX - 3)];
    let mut out = BytesMut::with_capacity(PREFIX_LEN + 3 + message.len());
    put_prefix(&mut out, Kind::End, 3 + message.len());
    out.put_u8(status.code() as u8);
    out.put_u16(status.catalogue().unwrap_or(0));
    out.put_slice(message.as_bytes());
    out.freeze()
}

fn put_prefix(out: &mut BytesMut, kind: Kind, len: usize) {
    out.put_u8(kind as u8);
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
}

/// Decodes a prefix and checks the length against the bound of its kind.
fn decode_bounded_prefix(
    prefix: [u8; PREFIX_LEN],
    max: usize,
) -> Result<(Kind, usize), FrameError> {
    let (kind, len) = decode_prefix(prefix)?;
    let max = match kind {
        Kind::Header => HEADER_LEN_MAX,
        Kind::Message => max,
        Kind::End => END_LEN_MAX,
    };
    if len > max {
        Err(FrameError::TooLong { len, max })
    } else {
        Ok((kind, len))
    }
}

/// Kind and payload length of the first frame in `arrived`. `None` means it is incomplete. `max`
/// bounds a message, bytes; other kinds have their own bound.
pub(crate) fn first_frame(arrived: &[u8], max: usize) -> Result<Option<(Kind, usize)>, FrameError> {
    let Some(prefix) = arrived.first_chunk::<PREFIX_LEN>() else {
        return Ok(None);
    };
    let (kind, len) = decode_bounded_prefix(*prefix, max)?;
    Ok((arrived.len() >= PREFIX_LEN + len).then_some((kind, len)))
}

/// Splits the first frame off `arrived`. `None` means it is incomplete. `max` bounds a message,
/// bytes; other kinds have their own bound.
pub fn split_frame(arrived: &mut Bytes, max: usize) -> Result<Option<(Kind, Bytes)>, FrameError> {
    let first = first_frame(arrived, max)?;
    Ok(first.map(|(kind, len)| {
        arrived.advance(PREFIX_LEN);
        (kind, arrived.split_to(len))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        let header = Header {
            method: "/a.B/C",
            deadline_ms: 77,
        };
        let mut bytes = encode_header(&header).unwrap();
        let (kind, payload) = split_frame(&mut bytes, 10).unwrap().unwrap();
        assert_eq!(kind, Kind::Header);
        assert_eq!(decode_header(&payload).unwrap(), header);
    }

    #[test]
    fn header_refuses() {
        for (bytes, why) in [
            (&b""[..], FrameError::Short),
            (b"\x01\0\0\0", FrameError::Short),
            (b"\x02\0\0\0\0/a", FrameError::Version),
            (b"\x01\0\0\0\0", FrameError::Text),
            (b"\x01\0\0\0\0a/b", FrameError::Text),
            (b"\x01\0\0\0\0/\xff", FrameError::Text),
            (b"\x01\0\0\0\0/a b", FrameError::Text),
        ] {
            assert_eq!(decode_header(bytes), Err(why), "{bytes:?}");
        }
    }

    #[test]
    fn end_round_trips() {
        for end in [
            Ok(()),
            Err(LinkStatus::not_found("no machine")),
            Err(LinkStatus::internal("é".repeat(3000)).with_catalogue(1203)),
        ] {
            let bytes = encode_end(&end);
            let got = decode_end(&bytes[PREFIX_LEN..]).unwrap();
            match (&end, &got) {
                (Ok(()), Ok(())) => {}
                (Err(a), Err(b)) => {
                    assert_eq!((a.code(), a.catalogue()), (b.code(), b.catalogue()));
                    assert!(a.message().starts_with(b.message()));
                }
                _ => panic!("{end:?} became {got:?}"),
            }
        }
    }

    #[test]
    fn oversize_and_cut_frames_are_refused() {
        let too_long = Err(FrameError::TooLong { len: 257, max: 256 });
        for (bytes, max, found) in [
            (&[2, 0, 0, 1, 1][..], 256, too_long),
            (&[9, 0, 0, 0, 0], 9, Err(FrameError::Kind)),
            (&[2, 0, 0], 9, Ok(None)),
            (&[2, 0, 0, 0, 3, 1], 9, Ok(None)),
            (
                &[2, 0, 0, 0, 1, 7],
                9,
                Ok(Some((Kind::Message, Bytes::from_static(&[7])))),
            ),
        ] {
            assert_eq!(
                split_frame(&mut Bytes::from_static(bytes), max),
                found,
                "{bytes:?}"
            );
        }
    }
}
