//! Channels between simulated nodes, over turmoil's TCP.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use control_store::{Channel, ClusterMember, Lane, Transport};
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use tokio::time::{Instant, sleep_until};
use turmoil::net::{TcpListener, TcpStream};

const PORT: u16 = 7000;
/// A connection that is not made by then never will be.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two signs of life on a channel.
const SIGN_EVERY: Duration = Duration::from_secs(1);
/// A channel on which nothing was heard for so long is broken.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Frames that wait between a store and the wire.
const FRAMES_MAX: usize = 16;

/// A node's name in the simulated network.
pub(crate) fn host(node: u64) -> String {
    format!("n{node}")
}

/// Which node an address belongs to.
fn node_of(address: IpAddr) -> Option<u64> {
    turmoil::reverse_lookup(address)?
        .strip_prefix('n')?
        .parse()
        .ok()
}

/// The way to the other nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimTransport;

impl Transport for SimTransport {
    fn open(&self, member: &ClusterMember, _lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
        let address = (member.address.clone(), PORT);
        Box::pin(async move {
            let connect = TcpStream::connect(address);
            let stream = tokio::time::timeout(CONNECT_TIMEOUT, connect)
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            Ok(channel(stream))
        })
    }
}

/// Where channels of others come in.
pub(crate) async fn listen() -> io::Result<TcpListener> {
    TcpListener::bind(("0.0.0.0", PORT)).await
}

/// The next channel and who opened it.
pub(crate) async fn accept(listener: &TcpListener) -> io::Result<(u64, Channel)> {
    loop {
        let (stream, from) = listener.accept().await?;
        if let Some(node) = node_of(from.ip()) {
            return Ok((node, channel(stream)));
        }
    }
}

/// A channel over `stream` that breaks when the other side falls silent, as QUIC's does.
fn channel(stream: TcpStream) -> Channel {
    let (reader, writer) = stream.into_split();
    let (near, far) = Channel::pair(FRAMES_MAX);
    let pump = pump(far, Channel::over(reader, writer));
    // Ends with either side of the channel, or with the node.
    tokio::runtime::Handle::current().spawn(pump);
    near
}

/// Carries frames both ways. Empty ones say that this side is there; no store sends them.
async fn pump(mut store: Channel, mut wire: Channel) {
    let mut silent_from = Instant::now();
    let mut next_sign = Instant::now() + SIGN_EVERY;
    loop {
        tokio::select! {
            biased;
            heard = wire.incoming.next() => {
                let Some(Ok(frame)) = heard else { return };
                silent_from = Instant::now();
                if !frame.is_empty() && store.outgoing.send(frame).await.is_err() {
                    return;
                }
            }
            said = store.incoming.next() => {
                let Some(Ok(frame)) = said else { return };
                if wire.outgoing.send(frame).await.is_err() {
                    return;
                }
            }
            () = sleep_until(next_sign) => {
                next_sign += SIGN_EVERY;
                let is_silent = silent_from.elapsed() > SILENCE_MAX;
                if is_silent || wire.outgoing.send(Bytes::new()).await.is_err() {
                    return;
                }
            }
        }
    }
}
