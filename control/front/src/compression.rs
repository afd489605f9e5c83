//! Compression of requests and answers, with bounds on the decompressed size and the memory.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::HeaderMap;
use strum::{EnumString, IntoStaticStr};
use tonic::Status;

use super::status::too_large;

/// Smallest answer that is compressed, bytes. Below it the headers outweigh the gain.
pub(super) const COMPRESSED_FROM: usize = 1 << 10;
/// Largest message that is compressed on the task of its call, bytes. A larger one is compressed on
/// a blocking thread, so that other calls do not wait for it.
const ASIDE_FROM: usize = 256 << 10;
/// Level of zstd for answers: the fastest regular level.
const ZSTD_LEVEL: i32 = 1;
/// Largest window of zstd that a request may ask for, as a power of two (RFC 8878, 3.1.1.1.2
/// recommends 8 MiB): it bounds the memory of a call.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Window of zstd for answers that are sent in chunks, as a power of two. Each such answer holds a
/// window and its tables in memory until it is sent.
const STREAM_WINDOW_LOG: u32 = 17;
/// Supported encodings, for the text of refusals.
pub(super) const SUPPORTED: &str = "zstd, gzip, identity";

/// Compression of messages or of the whole body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Compression {
    /// No compression.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// The compression of this name in headers. `None` means that the server does not support it.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" => Some(Self::Identity),
            name => name.parse().ok(),
        }
    }

    /// Its name in headers.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    /// The compression for an answer to this header: zstd before gzip, because it costs less. Of
    /// weights only a zero counts, which refuses an encoding (RFC 9110, 12.5.3).
    pub(super) fn accepted(headers: &HeaderMap, header: &str) -> Self {
        let mut best = Self::Identity;
        let values = headers.get_all(header).into_iter();
        for offer in values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
        {
            let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
            let refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
            match Self::from_name(name) {
                Some(Self::Zstd) if !refused => return Self::Zstd,
                Some(Self::Gzip) if !refused => best = Self::Gzip,
                _ => {}
            }
        }
        best
    }

    /// Decompresses a message of at most `bytes_max` bytes. Empty input is an empty message.
    ///
    /// # Errors
    /// `invalid_argument` for data that cannot be read; `resource_exhausted` above the limit.
    pub(super) fn expand(self, data: &Bytes, bytes_max: usize) -> Result<Bytes, Status> {
        if data.is_empty() {
            return Ok(Bytes::new());
        }
        let out = match self {
            Self::Identity => return Ok(data.clone()),
            Self::Gzip => bounded(GzDecoder::new(&data[..]), bytes_max),
            Self::Zstd => zstd::Decoder::new(&data[..]).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                bounded(decoder, bytes_max)
            }),
        };
        let out = out.map_err(|_| {
            let name = self.name();
            Status::invalid_argument(format!("the {name} data of the request cannot be read"))
        })?;
        if out.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        Ok(out.into())
    }

    /// Compresses a message. `None` means that it is too small, or did not become smaller.
    pub(super) async fn shrink(self, message: &Bytes) -> Option<Bytes> {
        if self == Self::Identity || message.len() < COMPRESSED_FROM {
            return None;
        }
        let small = if message.len() < ASIDE_FROM {
            self.pack(message)
        } else {
            let message = message.clone();
            let work = tokio::task::spawn_blocking(move || self.pack(&message));
            work.await.ok()?
        };
        small.filter(|small| small.len() < message.len())
    }

    fn pack(self, message: &[u8]) -> Option<Bytes> {
        let packed = match self {
            Self::Identity => return None,
            Self::Gzip => {
                let room = Vec::with_capacity(message.len() / 4);
                let mut encoder = GzEncoder::new(room, flate2::Compression::fast());
                encoder
                    .write_all(message)
                    .and_then(|()| encoder.finish())
                    .ok()?
            }
            Self::Zstd => zstd::bulk::compress(message, ZSTD_LEVEL).ok()?,
        };
        Some(packed.into())
    }
}

/// Compresses an answer in parts.
pub(super) enum StreamCompressor {
    /// No compression.
    Identity,
    /// RFC 1952.
    Gzip(GzEncoder<Vec<u8>>),
    /// RFC 8878.
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl StreamCompressor {
    /// Begins an answer.
    ///
    /// # Errors
    /// The compressor cannot allocate its memory.
    pub(super) fn begin(compression: Compression) -> std::io::Result<Self> {
        Ok(match compression {
            Compression::Identity => Self::Identity,
            Compression::Gzip => {
                Self::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::fast()))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(STREAM_WINDOW_LOG)?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Compresses a part, and returns the bytes that are ready to send; only the last part always
    /// has some.
    ///
    /// # Errors
    /// The compressor fails, which no input causes.
    pub(super) fn push(&mut self, part: Vec<u8>, is_last: bool) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Identity => Ok(part),
            Self::Gzip(encoder) => {
                encoder.write_all(&part)?;
                if is_last {
                    encoder.try_finish()?;
                }
                Ok(std::mem::take(encoder.get_mut()))
            }
            Self::Zstd(encoder) => {
                encoder.write_all(&part)?;
                if is_last {
                    encoder.do_finish()?;
                }
                Ok(std::mem::take(encoder.get_mut()))
            }
        }
    }
}

/// Reads at most one byte more than the limit, which is enough to detect that it is exceeded.
fn bounded(from: impl Read, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut out = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    const ALL: [Compression; 3] = [Compression::Identity, Compression::Gzip, Compression::Zstd];

    #[test]
    fn the_best_of_what_is_accepted() {
        let cases = [
            (vec![], Compression::Identity),
            (vec!["br, deflate"], Compression::Identity),
            (vec!["gzip"], Compression::Gzip),
            (vec!["gzip, zstd"], Compression::Zstd),
            (vec!["s2, snappy", "ZSTD;q=0.5,gzip"], Compression::Zstd),
            (vec!["zstd;q=0, gzip;q=1.0"], Compression::Gzip),
            (vec!["zstd; q=0.0"], Compression::Identity),
        ];
        for (offers, wanted) in cases {
            let mut headers = HeaderMap::new();
            for offer in &offers {
                headers.append("accept-encoding", offer.parse().unwrap());
            }
            let got = Compression::accepted(&headers, "accept-encoding");
            assert_eq!(got, wanted, "{offers:?}");
        }
    }

    #[tokio::test]
    async fn what_was_shrunk_expands_again() {
        for size in [COMPRESSED_FROM, ASIDE_FROM + 1] {
            let message = Bytes::from(vec![b'a'; size]);
            for compression in [Compression::Gzip, Compression::Zstd] {
                let small = compression.shrink(&message).await.unwrap();
                assert!(small.len() < size / 10);
                assert_eq!(compression.expand(&small, size).unwrap(), message);
                let refusal = compression.expand(&small, size - 1).unwrap_err();
                assert_eq!(refusal.code(), Code::ResourceExhausted);
            }
        }
        let short = Bytes::from_static(b"short");
        assert_eq!(Compression::Zstd.shrink(&short).await, None);
        let long = Bytes::from(vec![7; COMPRESSED_FROM]);
        assert_eq!(Compression::Identity.shrink(&long).await, None);
    }

    #[test]
    fn what_was_packed_in_parts_expands_again() {
        let parts: Vec<Vec<u8>> = (0..40_u8).map(|byte| vec![byte; 10_000]).collect();
        for compression in ALL {
            let mut packer = StreamCompressor::begin(compression).unwrap();
            let mut sent = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                sent.extend(packer.push(part.clone(), index + 1 == parts.len()).unwrap());
            }
            let whole = compression.expand(&sent.into(), 400_000).unwrap();
            assert_eq!(whole, parts.concat(), "{compression:?}");
        }
    }

    #[test]
    fn a_window_above_the_limit_is_refused() {
        let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&vec![0; 4096]).unwrap();
        let wide = Bytes::from(encoder.finish().unwrap());
        let refusal = Compression::Zstd.expand(&wide, 1 << 20).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument);
    }

    #[test]
    fn fuzz_expand() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let data = Bytes::copy_from_slice(bytes);
            for compression in ALL {
                if let Ok(message) = compression.expand(&data, bytes.len().max(64)) {
                    assert!(message.len() <= bytes.len().max(64));
                }
            }
        });
    }

    #[test]
    fn names_in_headers_do_not_change() {
        for (compression, name) in [
            (Compression::Identity, "identity"),
            (Compression::Gzip, "gzip"),
            (Compression::Zstd, "zstd"),
        ] {
            assert_eq!(compression.name(), name);
            assert_eq!(Compression::from_name(name), Some(compression));
        }
        assert_eq!(Compression::from_name(" GZIP "), Some(Compression::Gzip));
        assert_eq!(Compression::from_name(""), Some(Compression::Identity));
        assert_eq!(Compression::from_name("br"), None);
    }
}
