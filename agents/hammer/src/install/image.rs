//! Fetches the image and unpacks it while it arrives: hashed, decompressed and written in one
//! pass, with a bounded amount of memory.
//!
//! The digest is known only at the end. Until then nothing of the image is used, and a wrong one
//! leaves a disk that is wiped again before anything could boot from it.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::time::Duration;

use base_runtime::Backoff;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use proto_mesh::Image;
use ring::digest::{Context, SHA256, SHA512};
use tokio::sync::mpsc;

use super::bounded::{Expanded, Expansion};
use super::rootfs::Root;
use super::untar::{self, Unpacked};
use crate::net::http::{Answer, Http};

/// Frames between network and disk; a frame has at most some 400 KiB.
const FRAMES_MAX: usize = 16;
/// Largest image as it is fetched, bytes; a server that sends without end is left.
const IMAGE_LEN_MAX: u64 = 64 << 30;
/// Largest memory that decompression may want of what came before, as a power of two: what zstd
/// takes without being asked.
const WINDOW_LOG_MAX: u32 = 27;
/// Bound on what decompression makes of an image.
const EXPANSION: Expansion = Expansion {
    free: 1 << 30,
    ratio: 200,
};
/// Without a byte for so long a connection counts as broken.
const STALL_LIMIT: Duration = Duration::from_secs(60);
/// Attempts without progress.
const TRIES_MAX: u32 = 6;
/// Pauses between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));

/// Why the image is not on the disk.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{0:?} is no digest: want sha256:<hex> or sha512:<hex>")]
    DigestSpec(String),
    #[error("{url} answers {status}")]
    Status { url: String, status: StatusCode },
    #[error("cannot fetch {url}: {reason}")]
    Network { url: String, reason: String },
    #[error("the image is cut short: {have} of {want} bytes arrived")]
    Cut { have: u64, want: u64 },
    #[error("the image has digest {have}, not {want}; it was changed or damaged")]
    Digest { want: String, have: String },
    #[error("the image is too big for the disk")]
    TooBig,
    #[error("the image is larger than {IMAGE_LEN_MAX} bytes")]
    TooLong,
    #[error("the image is no zstd-compressed tar")]
    Format(#[source] io::Error),
    #[error("cannot write the image")]
    Disk(#[source] io::Error),
}

impl ImageError {
    /// Whether another try may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Network { .. } | Self::Cut { .. } => true,
            _ => false,
        }
    }
}

/// Puts the image below `root`.
///
/// # Errors
/// See [`ImageError`]; what was written until then must not be used.
pub async fn install(http: &Http, image: &Image, root: Root) -> Result<Unpacked, ImageError> {
    let want = Digest::parse(&image.digest)?;
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    let writer = tokio::task::spawn_blocking(move || write(want, receiver, &root));
    let fetched = fetch(http, &image.url, sender).await;
    let written = writer
        .await
        .map_err(|e| ImageError::Disk(io::Error::other(e)))?;
    match (fetched, written) {
        // The writer gave up first, which is why fetching ended.
        (_, Err(error @ (ImageError::TooBig | ImageError::Disk(_)))) => Err(error),
        (Err(error), _) => Err(error),
        (Ok(()), written) => written,
    }
}

/// A digest as an image's label has it.
struct Digest {
    text: String,
    context: Context,
}

impl Digest {
    fn parse(text: &str) -> Result<Self, ImageError> {
        let bad = || ImageError::DigestSpec(text.to_string());
        let text = text.trim().to_lowercase();
        let (name, hex) = text.split_once(':').ok_or_else(bad)?;
        let algorithm = match name {
            "sha256" => &SHA256,
            "sha512" => &SHA512,
            _ => return Err(bad()),
        };
        let is_hex = hex.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex || hex.len() != algorithm.output_len() * 2 {
            return Err(bad());
        }
        Ok(Self {
            text: text.clone(),
            context: Context::new(algorithm),
        })
    }

    fn check(self) -> Result<(), ImageError> {
        let name = self.text.split(':').next().unwrap_or_default();
        let have = self.context.finish();
        let hex: String = have.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        let have = format!("{name}:{hex}");
        if have == self.text {
            Ok(())
        } else {
            Err(ImageError::Digest {
                want: self.text,
                have,
            })
        }
    }
}

/// Hashes, decompresses and unpacks what comes; runs on a thread of its own.
fn write(
    digest: Digest,
    receiver: mpsc::Receiver<Bytes>,
    root: &Root,
) -> Result<Unpacked, ImageError> {
    let mut stream = Hashing {
        digest,
        receiver,
        frame: Bytes::new(),
        arrived: Rc::default(),
    };
    let arrived = Rc::clone(&stream.arrived);
    let unpacked = zstd::Decoder::new(&mut stream).and_then(|mut decoder| {
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        untar::unpack(Expanded::new(decoder, arrived, EXPANSION), root)
    });
    if let Err(error) = &unpacked
        && !is_damage(error)
    {
        return Err(match unpacked {
            Err(e) if e.kind() == io::ErrorKind::StorageFull => ImageError::TooBig,
            Err(e) => ImageError::Disk(e),
            Ok(_) => ImageError::TooBig,
        });
    }
    // What follows the archive belongs to the digest, and tells damage from a bad image.
    io::copy(&mut stream, &mut io::sink()).map_err(ImageError::Disk)?;
    stream.digest.check()?;
    unpacked.map_err(ImageError::Format)
}

/// Whether an error speaks of the stream's content and not of the disk. zstd's errors are of kind
/// `Other`; the kernel's carry a number.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, Other, UnexpectedEof};
    error.raw_os_error().is_none() && matches!(error.kind(), InvalidData | Other | UnexpectedEof)
}

/// Frames as a reader; each is hashed as it is taken.
struct Hashing {
    digest: Digest,
    receiver: mpsc::Receiver<Bytes>,
    frame: Bytes,
    /// Bytes that were taken.
    arrived: Rc<Cell<u64>>,
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.is_empty() {
            match self.receiver.blocking_recv() {
                Some(frame) => {
                    self.digest.context.update(&frame);
                    self.arrived.set(self.arrived.get() + frame.len() as u64);
                    self.frame = frame;
                }
                None => return Ok(0),
            }
        }
        let len = buffer.len().min(self.frame.len());
        buffer[..len].copy_from_slice(&self.frame.split_to(len));
        Ok(len)
    }
}

/// Where a download stands.
#[derive(Default)]
struct Progress {
    have: u64,
    total: Option<u64>,
    /// Names this very version of the file; a download is only continued with it.
    etag: Option<String>,
}

impl Progress {
    fn cut(&self) -> ImageError {
        let (have, want) = (self.have, self.total.unwrap_or_default());
        ImageError::Cut { have, want }
    }
}

/// Sends the file's bytes, going on where a broken connection ended if the server can.
async fn fetch(http: &Http, url: &str, sender: mpsc::Sender<Bytes>) -> Result<(), ImageError> {
    let mut progress = Progress::default();
    let mut tries = 0;
    loop {
        let before = progress.have;
        let error = match attempt(http, url, &mut progress, &sender).await {
            Ok(()) => return Ok(()),
            Err(error) if !error.is_retryable() => return Err(error),
            Err(error) => error,
        };
        if progress.have > before {
            tries = 0;
        }
        let pause = BACKOFF.pause(tries);
        tries += 1;
        let can_continue = progress.have == 0 || progress.etag.is_some();
        if tries >= TRIES_MAX || !can_continue {
            return Err(error);
        }
        tracing::warn!(%error, have = progress.have, "image: trying again");
        tokio::time::sleep(pause).await;
    }
}

async fn attempt(
    http: &Http,
    url: &str,
    progress: &mut Progress,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), ImageError> {
    let network = |reason: String| ImageError::Network {
        url: url.to_string(),
        reason,
    };
    let mut headers = Vec::new();
    if let (have @ 1.., Some(etag)) = (progress.have, &progress.etag) {
        headers.push(("range", format!("bytes={have}-")));
        headers.push(("if-range", etag.clone()));
    }
    let mut answer = http
        .get(url, &headers)
        .await
        .map_err(|e| network(format!("{e:#}")))?;
    match answer.status() {
        StatusCode::OK if progress.have == 0 => {
            progress.total = answer.header(CONTENT_LENGTH).and_then(|v| v.parse().ok());
            // A weak tag does not promise the same bytes.
            let tag = answer.header(ETAG).filter(|t| !t.starts_with("W/"));
            progress.etag = tag.map(str::to_string);
        }
        StatusCode::PARTIAL_CONTENT if continues(&answer, progress.have) => {}
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            // Another file by now, or a server that cannot go on.
            progress.etag = None;
            return Err(progress.cut());
        }
        status => {
            let url = url.to_string();
            return Err(ImageError::Status { url, status });
        }
    }
    loop {
        let piece = tokio::time::timeout(STALL_LIMIT, answer.next())
            .await
            .map_err(|_| network("the server stalls".to_string()))?;
        match piece {
            Ok(Some(piece)) => {
                progress.have += piece.len() as u64;
                if progress.have > IMAGE_LEN_MAX {
                    return Err(ImageError::TooLong);
                }
                if sender.send(piece).await.is_err() {
                    // The writer says why.
                    return Ok(());
                }
            }
            Ok(None) if progress.total.is_none_or(|want| progress.have >= want) => return Ok(()),
            Err(error) if progress.total.is_none() => return Err(network(error.to_string())),
            Ok(None) | Err(_) => return Err(progress.cut()),
        }
    }
}

fn continues(answer: &Answer, have: u64) -> bool {
    let range = answer.header(CONTENT_RANGE);
    range.is_some_and(|r| r.starts_with(&format!("bytes {have}-")))
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
