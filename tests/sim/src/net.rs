//! Channels between simulated nodes, over turmoil's TCP.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use control_store::{Channel, Lane, Member, Transport};
use futures::future::BoxFuture;
use turmoil::net::{TcpListener, TcpStream};

const PORT: u16 = 7000;
/// A connection that is not made by then never will be.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

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
    fn open(&self, member: &Member, _lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
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

fn channel(stream: TcpStream) -> Channel {
    let (reader, writer) = stream.into_split();
    Channel::over(reader, writer)
}
