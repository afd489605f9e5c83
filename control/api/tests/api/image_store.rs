//! An image store on loopback that remembers what it was asked for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Longest wait for a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a path is answered.
#[derive(Debug, Clone)]
pub(crate) enum Served {
    /// With these bytes.
    File(Vec<u8>),
    /// With these bytes once [`ImageStore::open_gate`] is called.
    Held(Vec<u8>),
    /// With a status and a body that is nobody's business.
    Status(u16),
    /// With a head that promises so many bytes, and nothing after it.
    Promise(u64),
    /// With bytes without end, and without a length.
    Endless,
    /// Elsewhere.
    Redirect(String),
}

/// What the store and its connections share.
#[derive(Debug)]
struct Shelf {
    served: Mutex<BTreeMap<String, Served>>,
    requests: Mutex<Vec<String>>,
    gate: watch::Sender<bool>,
}

/// A running store; it ends when it is dropped.
pub(crate) struct ImageStore {
    address: SocketAddr,
    shelf: Arc<Shelf>,
    _tasks: JoinSet<()>,
}

impl ImageStore {
    pub(crate) async fn start() -> Self {
        // Others may have chosen it already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shelf = Arc::new(Shelf {
            served: Mutex::default(),
            requests: Mutex::default(),
            gate: watch::Sender::new(false),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shelf)));
        Self {
            address,
            shelf,
            _tasks: tasks,
        }
    }

    /// Answers `path` from now on; a path that is not served is answered with 404.
    pub(crate) fn serve(&self, path: &str, served: Served) {
        let mut all = self.shelf.served.lock().unwrap();
        all.insert(path.to_owned(), served);
    }

    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        self.serve(path, Served::File(content.as_ref().to_vec()));
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The address with a name and a password before it.
    pub(crate) fn url_with_password(&self, path: &str) -> String {
        format!("http://reader:hunter2@{}{path}", self.address)
    }

    pub(crate) fn open_gate(&self) {
        self.shelf.gate.send_replace(true);
    }

    /// The paths of the requests since the last call, in order.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.shelf.requests.lock().unwrap())
    }

    /// Waits until somebody asked for `path`.
    pub(crate) async fn asked_for(&self, path: &str) {
        let until = Instant::now() + PATIENCE;
        let is_there = || {
            let requests = self.shelf.requests.lock().unwrap();
            requests.iter().any(|request| request == path)
        };
        while !is_there() {
            assert!(Instant::now() < until, "nobody asks for {path}");
            tokio::task::yield_now().await;
        }
    }
}

async fn accept(listener: TcpListener, shelf: Arc<Shelf>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let shelf = Arc::clone(&shelf);
        connections.spawn(async move {
            // A client may leave in the middle.
            drop(answer(stream, &shelf).await);
        });
    }
}

async fn answer(mut stream: TcpStream, shelf: &Shelf) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let served = shelf.served.lock().unwrap().get(&path).cloned();
    shelf.requests.lock().unwrap().push(path);
    match served.unwrap_or(Served::Status(404)) {
        Served::File(content) => whole(&mut stream, "200 OK", &content).await,
        Served::Held(content) => {
            let mut gate = shelf.gate.subscribe();
            gate.wait_for(|open| *open).await.unwrap();
            whole(&mut stream, "200 OK", &content).await
        }
        Served::Status(status) => {
            let body = b"an inside matter of the store";
            whole(&mut stream, &format!("{status} No"), body).await
        }
        Served::Promise(bytes) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            // Until the client leaves.
            stream.read_u8().await.map(drop)
        }
        Served::Endless => {
            let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
            stream.write_all(head).await?;
            loop {
                stream.write_all(&[0; 4096]).await?;
            }
        }
        Served::Redirect(to) => {
            let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n");
            let head = format!("{head}connection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await
        }
    }
}

async fn whole(stream: &mut TcpStream, status: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await
}
