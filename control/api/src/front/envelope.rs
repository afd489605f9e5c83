//! Message frames (one flag byte, four length bytes) and bounded decompression.

use std::io::Read;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flate2::read::GzDecoder;
use tonic::Status;

use super::protocol::Compression;

/// Largest body of a request, as it arrives and after decompression, in bytes.
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

/// What goes before a message of so many bytes.
pub(super) fn frame_header(flags: u8, length: usize) -> [u8; HEADER_BYTES] {
    // Replies are below 4 GiB: they were encoded from one in-memory message.
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [flags, a, b, c, d]
}

/// Takes the first whole frame from `buffer`: its flags and message.
pub(super) fn take_frame(buffer: &mut Bytes) -> Option<(u8, Bytes)> {
    let (header, rest) = buffer.split_at_checked(HEADER_BYTES)?;
    let flags = header[0];
    let length = usize::try_from(u32::from_be_bytes([
        header[1], header[2], header[3], header[4],
    ]))
    .unwrap_or(usize::MAX);
    if rest.len() < length {
        return None;
    }
    buffer.advance(HEADER_BYTES);
    Some((flags, buffer.split_to(length)))
}

/// The one message of a framed request body.
///
/// # Errors
/// `invalid_argument` for a cut frame, for no or more than one message, and for bad gzip data;
/// `resource_exhausted` for a message above [`MESSAGE_BYTES_MAX`].
pub(super) fn single_message(mut body: Bytes, compression: Compression) -> Result<Bytes, Status> {
    let Some((flags, message)) = take_frame(&mut body) else {
        return Err(Status::invalid_argument(
            "the request holds no whole message",
        ));
    };
    if !body.is_empty() {
        return Err(Status::invalid_argument(
            "the request holds more than one message; this method takes one",
        ));
    }
    match (flags, compression) {
        (0, _) => Ok(message),
        (FLAG_COMPRESSED, Compression::Gzip) => inflate(&message),
        (FLAG_COMPRESSED, Compression::Identity) => Err(Status::invalid_argument(
            "a message is marked compressed, but the request names no compression",
        )),
        _ => Err(Status::invalid_argument(
            "a message carries unknown frame flags",
        )),
    }
}

/// Decompresses gzip data up to the message limit. Empty input is an empty message.
///
/// # Errors
/// As [`single_message`].
pub(super) fn inflate(data: &[u8]) -> Result<Bytes, Status> {
    if data.is_empty() {
        return Ok(Bytes::new());
    }
    let limit = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut out = Vec::new();
    GzDecoder::new(data)
        .take(limit + 1)
        .read_to_end(&mut out)
        .map_err(|_| Status::invalid_argument("the gzip data of the request cannot be read"))?;
    if out.len() > MESSAGE_BYTES_MAX {
        return Err(too_large());
    }
    Ok(out.into())
}

/// The error of a request above the limit.
pub(super) fn too_large() -> Status {
    Status::resource_exhausted(format!(
        "the request is larger than {MESSAGE_BYTES_MAX} bytes"
    ))
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

    #[test]
    fn one_message() {
        let plain = single_message(frame(0, b"abc"), Compression::Identity).unwrap();
        assert_eq!(&plain[..], b"abc");
        let zipped = frame(FLAG_COMPRESSED, &gzip(b"abc"));
        assert_eq!(
            &single_message(zipped, Compression::Gzip).unwrap()[..],
            b"abc"
        );
    }

    #[test]
    fn bad_frames() {
        let mut two = BytesMut::from(frame(0, b"a"));
        two.extend_from_slice(&frame(0, b"b"));
        let cases: [(Bytes, Compression); 6] = [
            (Bytes::new(), Compression::Identity),
            (
                Bytes::from_static(&[0, 0, 0, 0, 9, 1]),
                Compression::Identity,
            ),
            (two.freeze(), Compression::Identity),
            (frame(FLAG_COMPRESSED, b"x"), Compression::Identity),
            (frame(FLAG_COMPRESSED, b"not gzip"), Compression::Gzip),
            (frame(0x40, b"x"), Compression::Identity),
        ];
        for (body, compression) in cases {
            let status = single_message(body.clone(), compression).unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{body:?}");
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = gzip(&vec![0; MESSAGE_BYTES_MAX + 1]);
        assert!(bomb.len() < 64 << 10);
        assert_eq!(inflate(&bomb).unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(
            inflate(&gzip(&vec![0; MESSAGE_BYTES_MAX])).unwrap().len(),
            MESSAGE_BYTES_MAX
        );
    }

    #[test]
    fn fuzz_request_frames() {
        bolero::check!().for_each(|bytes: &[u8]| {
            for compression in [Compression::Identity, Compression::Gzip] {
                if let Ok(message) = single_message(Bytes::copy_from_slice(bytes), compression) {
                    assert!(message.len() <= MESSAGE_BYTES_MAX);
                }
            }
        });
    }
}
