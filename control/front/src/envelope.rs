//! Message frames (one flag byte, four length bytes).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tonic::Status;

use super::compression::Compression;
use super::status::too_large;

/// Largest message of a request, as it arrives and after decompression, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Flag of a compressed message.
pub(super) const FLAG_COMPRESSED: u8 = 0x01;
/// Flag of Connect's end-of-stream envelope.
pub(super) const FLAG_CONNECT_END: u8 = 0x02;
/// Flag of gRPC-Web's trailer frame.
pub(super) const FLAG_WEB_TRAILERS: u8 = 0x80;

const HEADER_BYTES: usize = 5;

/// Puts one message into a frame.
pub(super) fn frame(flags: u8, message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + message.len());
    out.put_slice(&frame_header(flags, message.len()));
    out.put_slice(message);
    out.freeze()
}

/// The frame header of a message with this length in bytes.
pub(super) fn frame_header(flags: u8, length: usize) -> [u8; HEADER_BYTES] {
    // Replies are below 4 GiB: they were encoded from one in-memory message.
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [flags, a, b, c, d]
}

/// Takes the first whole frame from `buffer`: its flags and message.
pub(super) fn take_frame(buffer: &mut Bytes) -> Option<(u8, Bytes)> {
    let (flags, length) = peek_frame(buffer)?;
    if buffer.len() - HEADER_BYTES < length {
        return None;
    }
    buffer.advance(HEADER_BYTES);
    Some((flags, buffer.split_to(length)))
}

/// Flags and length of the message of the first frame, once its header is there.
pub(super) fn peek_frame(buffer: &[u8]) -> Option<(u8, usize)> {
    let ([flags, a, b, c, d], _) = buffer.split_first_chunk::<HEADER_BYTES>()?;
    let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
    Some((*flags, length))
}

/// Appends new data to the unread rest; data without a rest is not copied.
pub(super) fn joined(before: &Bytes, data: Bytes) -> Bytes {
    if before.is_empty() {
        return data;
    }
    let mut joined = BytesMut::with_capacity(before.len() + data.len());
    joined.put_slice(before);
    joined.put_slice(&data);
    joined.freeze()
}

/// The one message of a framed request body, of at most `bytes_max` bytes.
///
/// # Errors
/// `unimplemented` for no or more than one message, as gRPC asks of methods that take one;
/// otherwise as [`open`], and `invalid_argument` for a cut frame.
pub(super) fn single_message(
    mut body: Bytes,
    compression: Compression,
    bytes_max: usize,
) -> Result<Bytes, Status> {
    if body.is_empty() {
        return Err(Status::unimplemented(
            "the request holds no message; this method takes one",
        ));
    }
    let Some((flags, message)) = take_frame(&mut body) else {
        return Err(cut());
    };
    if !body.is_empty() {
        return Err(Status::unimplemented(
            "the request holds more than one message; this method takes one",
        ));
    }
    open(flags, &message, compression, bytes_max)
}

/// The message of a frame.
///
/// # Errors
/// `invalid_argument` for bad compressed data, `internal` for a message that is compressed
/// though the request named no compression, as gRPC asks; `resource_exhausted` for a message
/// above `bytes_max`.
pub(super) fn open(
    flags: u8,
    message: &Bytes,
    compression: Compression,
    bytes_max: usize,
) -> Result<Bytes, Status> {
    if message.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    match (flags, compression) {
        (0, _) => Ok(message.clone()),
        (FLAG_COMPRESSED, Compression::Identity) => Err(Status::internal(
            "a message is marked compressed, but the request names no compression",
        )),
        (FLAG_COMPRESSED, _) => compression.expand(message, bytes_max),
        _ => Err(Status::invalid_argument(
            "a message carries unknown frame flags",
        )),
    }
}

/// The error of a request that ends inside a frame.
pub(super) fn cut() -> Status {
    Status::invalid_argument("the request ends in the middle of a message")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::write::GzEncoder;
    use tonic::Code;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn single(body: Bytes, compression: Compression) -> Result<Bytes, Status> {
        single_message(body, compression, MESSAGE_BYTES_MAX)
    }

    #[test]
    fn one_message() {
        let plain = single(frame(0, b"abc"), Compression::Identity).unwrap();
        assert_eq!(&plain[..], b"abc");
        let zipped = frame(FLAG_COMPRESSED, &gzip(b"abc"));
        assert_eq!(&single(zipped, Compression::Gzip).unwrap()[..], b"abc");
    }

    #[test]
    fn bad_frames() {
        use Code::{Internal, InvalidArgument, Unimplemented};
        use Compression::{Gzip, Identity};
        let two = [frame(0, b"a"), frame(0, b"b")].concat().into();
        let cut = Bytes::from_static(&[0, 0, 0, 0, 9, 1]);
        let cases: [(Bytes, Compression, Code); 6] = [
            (Bytes::new(), Identity, Unimplemented),
            (cut, Identity, InvalidArgument),
            (two, Identity, Unimplemented),
            (frame(FLAG_COMPRESSED, b"x"), Identity, Internal),
            (frame(FLAG_COMPRESSED, b"not gzip"), Gzip, InvalidArgument),
            (frame(0x40, b"x"), Identity, InvalidArgument),
        ];
        for (body, compression, code) in cases {
            let status = single(body.clone(), compression).unwrap_err();
            assert_eq!(status.code(), code, "{body:?}");
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = frame(FLAG_COMPRESSED, &gzip(&vec![0; MESSAGE_BYTES_MAX + 1]));
        assert!(bomb.len() < 64 << 10);
        let refusal = single(bomb, Compression::Gzip).unwrap_err();
        assert_eq!(refusal.code(), Code::ResourceExhausted);
        let most = frame(FLAG_COMPRESSED, &gzip(&vec![0; MESSAGE_BYTES_MAX]));
        let most = single(most, Compression::Gzip).unwrap();
        assert_eq!(most.len(), MESSAGE_BYTES_MAX);
    }

    #[test]
    fn fuzz_request_frames() {
        bolero::check!().for_each(|bytes: &[u8]| {
            for compression in [Compression::Identity, Compression::Gzip, Compression::Zstd] {
                if let Ok(message) = single(Bytes::copy_from_slice(bytes), compression) {
                    assert!(message.len() <= MESSAGE_BYTES_MAX);
                }
            }
        });
    }
}
