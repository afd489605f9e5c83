//! The TFTP task of one network: serves read requests for boot programs.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proto_bounds::Places;
use proto_wire_tftp::{Packet, Request, error_code};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Concurrent transfers. Further requests are dropped; the client repeats them.
const TRANSFERS_MAX: usize = 128;
/// Concurrent transfers of one address. Further requests are dropped. A client that repeats its
/// request has two for a moment.
const TRANSFERS_EACH_MAX: usize = 8;
/// Block size without the `blksize` option, bytes (RFC 1350).
const BLOCK_LEN_DEFAULT: usize = 512;
/// Largest block size, bytes: 1500 less the headers of IP, UDP and TFTP. A larger block would be
/// sent in IP fragments, which many PXE ROMs cannot reassemble.
const BLOCK_LEN_MAX: usize = 1468;
/// Smallest block size, bytes (RFC 2348). A smaller request is ignored.
const BLOCK_LEN_MIN: usize = 8;
/// Largest window, blocks (RFC 7440). A client that requests a larger one gets this one.
const WINDOW_MAX: u64 = 32;
/// Retransmission timeout without the `timeout` option.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);
/// Longest `timeout` option, s. A longer one is ignored.
const TIMEOUT_S_MAX: u64 = 30;
/// Retransmissions without progress. After them the transfer fails.
const REPEATS_MAX: u32 = 6;
/// Longest request that is received, bytes. A longer one is cut.
const PACKET_LEN_MAX: usize = 2048;

/// A TFTP server for the files of one directory on one address.
#[derive(Debug)]
pub(crate) struct Tftp {
    socket: UdpSocket,
    address: Ipv4Addr,
    root: PathBuf,
}

impl Tftp {
    /// Opens the socket.
    pub(crate) async fn bind(address: SocketAddrV4, root: &Path) -> io::Result<Self> {
        let socket = UdpSocket::bind(address).await?;
        Ok(Self {
            socket,
            address: *address.ip(),
            root: root.into(),
        })
    }

    /// Serves until stopped.
    pub(crate) async fn run(self, stop: CancellationToken) -> io::Result<()> {
        let slots = Arc::new(Semaphore::new(TRANSFERS_MAX));
        let places = Places::each(TRANSFERS_EACH_MAX);
        let mut transfers = JoinSet::new();
        let mut buffer = vec![0_u8; PACKET_LEN_MAX];
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Some(done) = transfers.join_next() => {
                    // A panic is a bug that the next transfer would hit again: the process ends and
                    // its supervisor restarts it.
                    if let Err(error) = done && error.is_panic() {
                        return Err(io::Error::other(error));
                    }
                }
                received = self.socket.recv_from(&mut buffer) => {
                    let (len, from) = received?;
                    let Ok(Packet::Read(request)) = Packet::decode(&buffer[..len]) else {
                        self.refuse(from).await;
                        continue;
                    };
                    // A request beyond a bound is dropped without an answer: an error packet would
                    // end the boot, while silence makes the client repeat its request.
                    let Some(place) = places.take(from.ip()) else { continue };
                    let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else { continue };
                    let (root, address) = (self.root.clone(), self.address);
                    transfers.spawn(async move {
                        let file = request.file.clone();
                        match transfer(&root, address, from, &request).await {
                            Ok(bytes) => tracing::info!(%from, file, bytes, "TFTP sent"),
                            Err(error) => tracing::warn!(%from, file, %error, "TFTP failed"),
                        }
                        drop((slot, place));
                    });
                }
            }
        }
    }

    async fn refuse(&self, to: SocketAddr) {
        let packet = error(error_code::ILLEGAL, "only read requests are served");
        if let Err(error) = self.socket.send_to(&packet.encode(), to).await {
            tracing::debug!(%to, %error, "TFTP refusal not sent");
        }
    }
}

fn error(code: u16, message: &str) -> Packet {
    Packet::Error {
        code,
        message: message.into(),
    }
}

/// The negotiated options of a transfer.
#[derive(Debug, PartialEq, Eq)]
struct Terms {
    block_len: usize,
    window: u64,
    timeout: Duration,
    /// The accepted options, to be acknowledged. Empty means that the client requested none.
    taken: Vec<(String, String)>,
}

impl Terms {
    /// Accepts each option within its bounds. Unknown and invalid ones are left out of the
    /// acknowledgement, which refuses them (RFC 2347).
    fn of(request: &Request, file_len: u64) -> Self {
        let mut terms = Self {
            block_len: BLOCK_LEN_DEFAULT,
            window: 1,
            timeout: TIMEOUT_DEFAULT,
            taken: Vec::new(),
        };
        for (name, value) in &request.options {
            let Ok(number) = value.parse::<u64>() else {
                continue;
            };
            let taken = match name.as_str() {
                // The client sends 0 and is told the length of the file (RFC 2349).
                "tsize" => file_len,
                "blksize" if number >= BLOCK_LEN_MIN as u64 => {
                    let len = usize::try_from(number).unwrap_or(BLOCK_LEN_MAX);
                    terms.block_len = len.min(BLOCK_LEN_MAX);
                    terms.block_len as u64
                }
                "windowsize" if number >= 1 => {
                    terms.window = number.min(WINDOW_MAX);
                    terms.window
                }
                "timeout" if (1..=TIMEOUT_S_MAX).contains(&number) => {
                    terms.timeout = Duration::from_secs(number);
                    number
                }
                _ => continue,
            };
            terms.taken.push((name.clone(), taken.to_string()));
        }
        terms
    }
}

/// Sends one file; returns its length.
async fn transfer(
    root: &Path,
    address: Ipv4Addr,
    to: SocketAddr,
    request: &Request,
) -> io::Result<u64> {
    // Each transfer has its own port, which identifies it together with the client's (RFC 1350 §4).
    // Connecting it drops packets from other senders in the kernel.
    let socket = UdpSocket::bind((address, 0)).await?;
    socket.connect(to).await?;
    let file = match open(root, &request.file) {
        Ok(file) => file,
        Err(why) => {
            socket
                .send(&error(error_code::NOT_FOUND, "no such file").encode())
                .await?;
            return Err(why);
        }
    };
    let len = file.metadata()?.len();
    let terms = Terms::of(request, len);
    let sender = Sender {
        socket,
        file,
        len,
        terms,
    };
    sender.run().await?;
    Ok(len)
}

/// Opens a file of the asset directory. Only bare names are accepted, so that no path leads out of
/// the directory.
fn open(root: &Path, name: &str) -> io::Result<File> {
    // Some ROMs put a slash before the name.
    let name = name.trim_start_matches('/');
    if !crate::http::is_asset_name(name) {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "not a plain file name",
        ));
    }
    let file = File::open(root.join(name))?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, "not a file"))
    }
}

/// One transfer: sends a file in windows of blocks.
struct Sender {
    socket: UdpSocket,
    file: File,
    len: u64,
    terms: Terms,
}

impl Sender {
    /// Number of blocks. The first block that is not full ends the transfer, so a file of full
    /// blocks ends with an empty one.
    fn blocks(&self) -> u64 {
        self.len / self.terms.block_len as u64 + 1
    }

    async fn run(&self) -> io::Result<()> {
        let mut acked = 0_u64;
        if !self.terms.taken.is_empty() {
            self.offer_terms().await?;
        }
        let mut repeats = 0;
        while acked < self.blocks() {
            let end = (acked + self.terms.window).min(self.blocks());
            for block in acked + 1..=end {
                self.send_block(block).await?;
            }
            match self.await_ack(acked, end).await? {
                Some(progress) => {
                    acked = progress;
                    repeats = 0;
                }
                None => {
                    repeats += 1;
                    self.check_repeats(repeats)?;
                }
            }
        }
        Ok(())
    }

    async fn offer_terms(&self) -> io::Result<()> {
        let offer = Packet::OptionAck(self.terms.taken.clone()).encode();
        for repeats in 1.. {
            self.socket.send(&offer).await?;
            // The client acknowledges the options as block 0 (RFC 2347).
            if let Some(Packet::Ack { block: 0 }) = self.receive(self.terms.timeout).await? {
                break;
            }
            self.check_repeats(repeats)?;
        }
        Ok(())
    }

    fn check_repeats(&self, repeats: u32) -> io::Result<()> {
        if repeats < REPEATS_MAX {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not answer",
        ))
    }

    /// Waits for an acknowledgement inside the window. `None` means that the window must be sent
    /// again: nothing arrived in time, or the client misses its first block.
    async fn await_ack(&self, acked: u64, end: u64) -> io::Result<Option<u64>> {
        let deadline = tokio::time::Instant::now() + self.terms.timeout;
        loop {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            let Some(packet) = self.receive(left).await? else {
                return Ok(None);
            };
            let Packet::Ack { block } = packet else {
                continue;
            };
            // Block numbers wrap at 16 bits; a window is far smaller than that.
            if let Some(full) = (acked + 1..=end).find(|full| *full as u16 == block) {
                return Ok(Some(full));
            }
            // With a window, a repeated acknowledgement reports a gap. Without one it may be the
            // echo of a delayed packet; answering it would double every later packet ("sorcerer's
            // apprentice", RFC 1123 §4.2.3.1).
            if self.terms.window > 1 && block == acked as u16 {
                return Ok(None);
            }
        }
    }

    /// Receives the next packet of the client. `None` means that none arrived in time. An error
    /// packet ends the transfer.
    async fn receive(&self, wait: Duration) -> io::Result<Option<Packet>> {
        let mut buffer = [0_u8; 1024];
        let Ok(received) = timeout(wait, self.socket.recv(&mut buffer)).await else {
            return Ok(None);
        };
        match Packet::decode(&buffer[..received?]) {
            // iPXE and UEFI first request only the size and end that transfer by an error packet.
            Ok(Packet::Error { code, message }) => Err(io::Error::other(format!(
                "the client ended the transfer: {code} {message}"
            ))),
            Ok(packet) => Ok(Some(packet)),
            // Stands for any packet that no caller waits for. An error would let one damaged datagram
            // end the transfer.
            Err(_) => Ok(Some(error(error_code::UNDEFINED, ""))),
        }
    }

    async fn send_block(&self, block: u64) -> io::Result<()> {
        let start = (block - 1) * self.terms.block_len as u64;
        let left = self.len.saturating_sub(start);
        let len = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(self.terms.block_len);
        let mut bytes = vec![0_u8; len];
        self.file.read_exact_at(&mut bytes, start)?;
        let packet = Packet::Data {
            // The number wraps in large files; clients count along.
            block: block as u16,
            bytes,
        };
        self.socket.send(&packet.encode()).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(options: &[(&str, &str)]) -> Request {
        let options = options
            .iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect();
        Request {
            file: "f".into(),
            mode: "octet".into(),
            options,
        }
    }

    #[test]
    fn options_are_taken_within_bounds_and_the_rest_left_out() {
        let terms = Terms::of(
            &request(&[
                ("tsize", "0"),
                ("blksize", "65464"),
                ("windowsize", "64"),
                ("timeout", "0"),
                ("multicast", ""),
            ]),
            99,
        );
        assert_eq!((terms.block_len, terms.window), (1468, 32));
        let taken: Vec<_> = terms
            .taken
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        assert_eq!(taken, ["tsize=99", "blksize=1468", "windowsize=32"]);
        let plain = Terms::of(&request(&[("blksize", "4")]), 99);
        assert_eq!((plain.block_len, plain.taken.len()), (512, 0));
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.efi"), b"x").unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        assert!(open(dir.path(), "/a.efi").is_ok());
        for name in [
            "../a.efi",
            "sub",
            "sub/x",
            "",
            "..",
            ".",
            "/etc/passwd",
            "a.efi\\",
        ] {
            assert!(open(dir.path(), name).is_err(), "{name}");
        }
    }
}
