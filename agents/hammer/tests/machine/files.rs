//! A stand-in for pixie and the image store: tickets, a good image and bad ones, over HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const REQUEST_MAX: usize = 16 * 1024;
const CHUNK: usize = 256 * 1024;

pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    ticket: String,
    image: PathBuf,
    /// Bytes of images so far.
    sent: watch::Sender<u64>,
}

impl Server {
    pub(crate) async fn start(ticket: String, image: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = watch::Sender::new(0);
        let shared = Arc::new(Shared {
            ticket,
            image,
            sent,
        });
        let kept = shared.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                // A client that goes away is its own affair.
                connections.spawn(async move { drop(answer(stream, &shared).await) });
            }
        });
        Self {
            port,
            shared: kept,
            _tasks: tasks,
        }
    }

    /// Bytes of images that went out so far.
    pub(crate) fn count(&self) -> u64 {
        *self.shared.sent.borrow()
    }

    /// Waits until so many bytes of images went out.
    pub(crate) async fn sent(&self, bytes: u64) {
        let mut sent = self.shared.sent.subscribe();
        sent.wait_for(|sent| *sent >= bytes).await.unwrap();
    }
}

async fn answer(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut request = vec![0; REQUEST_MAX];
    let mut len = 0;
    while !request[..len].windows(4).any(|w| w == b"\r\n\r\n") {
        let read = stream.read(&mut request[len..]).await?;
        if read == 0 {
            return Ok(());
        }
        len += read;
    }
    let text = String::from_utf8_lossy(&request[..len]);
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some("POST"), Some("/v1/ticket")) => {
            whole(&mut stream, "200 OK", shared.ticket.as_bytes()).await
        }
        (Some("GET"), Some("/page")) => {
            whole(&mut stream, "200 OK", b"<html>not an image</html>").await
        }
        (Some("GET"), Some("/image")) => image(&mut stream, shared, false).await,
        (Some("GET"), Some("/cut")) => image(&mut stream, shared, true).await,
        _ => whole(&mut stream, "404 Not Found", b"").await,
    }
}

async fn whole(stream: &mut TcpStream, status: &str, body: &[u8]) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.shutdown().await
}

/// Promises all of the image, and breaks off after a part of it when it is to be cut.
async fn image(stream: &mut TcpStream, shared: &Shared, cut: bool) -> std::io::Result<()> {
    let mut file = tokio::fs::File::open(&shared.image).await?;
    let len = file.metadata().await?.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut left = if cut { 3 << 20 } else { len };
    let mut buffer = vec![0; CHUNK];
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let read = file.read(&mut buffer[..want]).await?;
        if read == 0 {
            break;
        }
        stream.write_all(&buffer[..read]).await?;
        left -= read as u64;
        shared.sent.send_modify(|sent| *sent += read as u64);
    }
    stream.shutdown().await
}
