//! The firmware's side of TFTP: one file, block by block.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Result, bail};
use proto_wire_tftp::{Packet, Request};
use tokio::net::UdpSocket;
use tokio::time::timeout;

const BLOCK_LEN: usize = 1468;
const WAIT: Duration = Duration::from_secs(1);
const TRIES: u32 = 6;
const PACKET_LEN_MAX: usize = 2048;

/// Reads a file from `server` at the address that was leased; its length.
///
/// # Errors
/// The server does not answer or has no such file.
pub(crate) async fn read(from: Ipv4Addr, server: SocketAddr, file: &str) -> Result<usize> {
    let socket = UdpSocket::bind((from, 0)).await?;
    let request = Packet::Read(Request {
        file: file.to_owned(),
        mode: "octet".into(),
        options: vec![("blksize".into(), BLOCK_LEN.to_string())],
    });
    let mut peer = server;
    let mut say = request;
    let (mut next, mut len) = (1_u16, 0);
    let mut tries = 0;
    let mut buffer = vec![0_u8; PACKET_LEN_MAX];
    loop {
        socket.send_to(&say.encode(), peer).await?;
        let Ok(received) = timeout(WAIT, socket.recv_from(&mut buffer)).await else {
            tries += 1;
            if tries == TRIES {
                bail!("no answer by TFTP from {server}");
            }
            continue;
        };
        let (bytes, sender) = received?;
        // The server answers from a port of its own for each transfer.
        peer = sender;
        tries = 0;
        match Packet::decode(buffer.get(..bytes).unwrap_or_default())? {
            Packet::OptionAck(_) => say = Packet::Ack { block: 0 },
            Packet::Data { block, bytes } => {
                say = Packet::Ack { block };
                if block != next {
                    continue;
                }
                next = next.wrapping_add(1);
                len += bytes.len();
                if bytes.len() < BLOCK_LEN {
                    socket.send_to(&say.encode(), peer).await?;
                    return Ok(len);
                }
            }
            Packet::Error { code, message } => bail!("TFTP error {code}: {message}"),
            Packet::Read(_) | Packet::Write(_) | Packet::Ack { .. } => bail!("not an answer"),
        }
    }
}
