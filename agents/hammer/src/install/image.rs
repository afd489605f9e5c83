//! Fetches the image and unpacks it while it arrives: hashed, decompressed and written in one
//! pass, with a bounded amount of memory.
//!
//! The digest is known only at the end. Until then nothing of the image is executed or read, and
//! after a wrong digest the disks are cleaned before anything could boot from them.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::time::Duration;

use base_runtime::Backoff;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use proto_mesh::Image;
use tokio::sync::mpsc;

use super::digest::Digest;
use super::expanded::{Expanded, Expansion};
use super::rootfs::Root;
use super::untar::{self, Unpacked};
use crate::net::http::{Answer, Http};

/// Frames queued between network and disk; a full queue stops the reading (backpressure). A frame
/// has at most some 400 KiB.
const FRAMES_MAX: usize = 16;
/// Compressed size of an image at most, bytes. Ends the download from a server that never stops.
const IMAGE_LEN_MAX: u64 = 64 << 30;
/// Window of the decompression at most, as a power of two: 128 MiB, zstd's own default limit.
/// Images with a larger window are refused.
const WINDOW_LOG_MAX: u32 = 27;
/// Bounds on the decompressed size of an image.
const EXPANSION: Expansion = Expansion {
    free: 1 << 30,
    ratio: 200,
};
/// Time without a byte after which a connection counts as broken.
const STALL_LIMIT: Duration = Duration::from_secs(60);
/// Consecutive attempts without progress until the download fails.
const TRIES_MAX: u32 = 6;
/// Pauses between attempts, first and longest.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));

/// A reason why the image is not on the disk.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The order's digest does not parse.
    #[error("{0:?} is not a digest: want sha256:<hex> or sha512:<hex>")]
    DigestSpec(String),
    /// The server's response has an error status.
    #[error("{url} answers {status}")]
    Status {
        /// The image's URL.
        url: String,
        /// The status.
        status: StatusCode,
    },
    /// The connection failed or stalled.
    #[error("cannot fetch {url}: {reason}")]
    Network {
        /// The image's URL.
        url: String,
        /// The cause.
        reason: String,
    },
    /// The connection ended early, and the server cannot resume.
    #[error("the image is cut short: {have} of {want} bytes arrived")]
    Cut {
        /// Bytes received.
        have: u64,
        /// Bytes announced.
        want: u64,
    },
    /// The received bytes are not those of the order.
    #[error("the image has digest {have}, not {want}; it was changed or damaged")]
    Digest {
        /// The order's digest.
        want: String,
        /// The digest of the received bytes.
        have: String,
    },
    /// The file system is full.
    #[error("the image is too big for the disk")]
    TooBig,
    /// The server sent more than [`IMAGE_LEN_MAX`].
    #[error("the image is larger than {IMAGE_LEN_MAX} bytes")]
    TooLong,
    /// The digest is right, but the content cannot be unpacked.
    #[error("the image is not a zstd-compressed tar")]
    Format(#[source] io::Error),
    /// The disk failed.
    #[error("cannot write the image")]
    Disk(#[source] io::Error),
}

impl ImageError {
    /// `true` if another attempt may succeed.
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

/// Fetches and unpacks the image below `root`.
///
/// # Errors
/// See [`ImageError`]. The files written until then must not be used.
pub async fn install(http: &Http, image: &Image, root: Root) -> Result<Unpacked, ImageError> {
    let want = Digest::parse(&image.digest)?;
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    // On a thread for blocking work: decompression and disk writes would stall the event sender and
    // the order stream for minutes.
    let writer = tokio::task::spawn_blocking(move || write(want, receiver, &root));
    let fetched = fetch(http, &image.url, sender).await;
    let written = writer
        .await
        .map_err(|e| ImageError::Disk(io::Error::other(e)))?;
    match (fetched, written) {
        // A failing disk goes first: it closes the queue, which ends the fetch. Otherwise a failed
        // fetch goes first, because a wrong digest only follows from the missing bytes.
        (_, Err(error @ (ImageError::TooBig | ImageError::Disk(_)))) => Err(error),
        (Err(error), _) => Err(error),
        (Ok(()), written) => written,
    }
}

/// Hashes, decompresses and unpacks the received frames. Blocks; runs on a thread for that.
fn write(
    digest: Digest,
    receiver: mpsc::Receiver<Bytes>,
    root: &Root,
) -> Result<Unpacked, ImageError> {
    let mut stream = HashedFrames {
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
    // The rest of the stream is hashed even after a format error. Bytes after the archive are part
    // of the digest; and if the digest is wrong, the cause is damage in transit, not a bad image.
    io::copy(&mut stream, &mut io::sink()).map_err(ImageError::Disk)?;
    stream.digest.check()?;
    unpacked.map_err(ImageError::Format)
}

/// `true` if an error is about the stream's content and not about the disk. zstd's errors have kind
/// `Other`; the kernel's have an error number.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, Other, UnexpectedEof};
    error.raw_os_error().is_none() && matches!(error.kind(), InvalidData | Other | UnexpectedEof)
}

/// A reader of the received frames that hashes each of them.
struct HashedFrames {
    digest: Digest,
    receiver: mpsc::Receiver<Bytes>,
    frame: Bytes,
    /// Bytes received so far.
    arrived: Rc<Cell<u64>>,
}

impl Read for HashedFrames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.is_empty() {
            match self.receiver.blocking_recv() {
                Some(frame) => {
                    self.digest.update(&frame);
                    self.arrived.set(self.arrived.get() + frame.len() as u64);
                    self.frame = frame;
                }
                // A download that failed looks like an early end here. `install` reports the
                // failure itself, not the damage that follows from it.
                None => return Ok(0),
            }
        }
        let len = buffer.len().min(self.frame.len());
        buffer[..len].copy_from_slice(&self.frame.split_to(len));
        Ok(len)
    }
}

/// The state of a download over several connections.
#[derive(Default)]
struct DownloadProgress {
    /// Bytes received.
    have: u64,
    /// Bytes announced. `None` if the server names no length.
    total: Option<u64>,
    /// The strong tag of this version of the file. `None` means that the download cannot resume.
    etag: Option<String>,
}

impl DownloadProgress {
    fn cut(&self) -> ImageError {
        let (have, want) = (self.have, self.total.unwrap_or_default());
        ImageError::Cut { have, want }
    }
}

/// Sends the file's bytes to the writer. Resumes after a broken connection if the server can.
async fn fetch(http: &Http, url: &str, sender: mpsc::Sender<Bytes>) -> Result<(), ImageError> {
    let mut progress = DownloadProgress::default();
    let mut tries = 0;
    loop {
        let before = progress.have;
        let error = match attempt(http, url, &mut progress, &sender).await {
            Ok(()) => return Ok(()),
            Err(error) if !error.is_retryable() => return Err(error),
            Err(error) => error,
        };
        // A large image over a poor link may need many connections; only a server that gives
        // nothing new uses up the attempts.
        if progress.have > before {
            tries = 0;
        }
        let pause = BACKOFF.pause(tries);
        tries += 1;
        let can_continue = progress.have == 0 || progress.etag.is_some();
        if tries >= TRIES_MAX || !can_continue {
            return Err(error);
        }
        tracing::warn!(%error, have = progress.have, "image download interrupted; resuming");
        tokio::time::sleep(pause).await;
    }
}

async fn attempt(
    http: &Http,
    url: &str,
    progress: &mut DownloadProgress,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), ImageError> {
    let network = |reason: String| ImageError::Network {
        url: url.to_string(),
        reason,
    };
    let mut headers = Vec::new();
    // `if-range` makes the server send the whole file (200) if it has changed meanwhile: bytes of
    // two versions in one stream could never match the digest.
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
            // A weak tag promises the same meaning, not the same bytes (RFC 9110 §8.8.1).
            let tag = answer.header(ETAG).filter(|t| !t.starts_with("W/"));
            progress.etag = tag.map(str::to_string);
        }
        StatusCode::PARTIAL_CONTENT if continues(&answer, progress.have) => {}
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            // The file has changed, or the server does not support ranges.
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
                    // The writer has ended; its own result has the reason.
                    return Ok(());
                }
            }
            // Without a length the end of the connection is the end of the file; if it came too
            // early, the digest is wrong.
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
