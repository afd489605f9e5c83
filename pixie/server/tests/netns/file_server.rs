//! A server of installers, by HTTP or HTTPS, that also does what servers should not do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::world::*;

/// Longer than any test that works.
const PATIENCE: Duration = Duration::from_secs(60);
const ACCEPT_AGAIN: Duration = Duration::from_millis(5);

/// The answer to each request for a path.
#[derive(Clone)]
pub(crate) enum Answer {
    /// The file, and 304 to who has it by this `ETag`.
    File(Vec<u8>, &'static str),
    /// Says the length of the file and sends half of it.
    Cut(Vec<u8>),
    /// Sends half of the file, and the rest when the gate opens.
    Gated(Vec<u8>, Gate),
    /// Half of the file, whose end only the end of the connection tells.
    Unframed(Vec<u8>),
    /// Says this length and sends nothing.
    Says(u64),
    /// Chunks without end.
    Endless,
    Redirect(String),
}

/// Opens once, for all that wait at it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        let passed = self.0.1.wait_timeout_while(open, PATIENCE, |open| !*open);
        drop(passed.unwrap());
    }
}

/// A request as it came, and the status that it was answered by.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) status: u16,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<BTreeMap<String, Answer>>,
    hits: Mutex<Vec<Hit>>,
    stop: AtomicBool,
}

/// Serves on pixie's own loopback until dropped.
pub(crate) struct FileServer {
    shared: Arc<Shared>,
    port: u16,
    scheme: &'static str,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    pub(crate) fn http(world: &World) -> Self {
        Self::start(world, None)
    }

    /// By HTTPS, with a certificate of its own, which goes to `ca_file`.
    pub(crate) fn https(world: &World, ca_file: &Path) -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let pem = made.cert.pem();
        std::fs::write(ca_file, &pem).unwrap();
        let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
        let key = made.signing_key.serialize_pem();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Self::start(world, Some(Arc::new(config)))
    }

    fn start(world: &World, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let shared = Arc::new(Shared::default());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (ready, started) = std::sync::mpsc::channel();
        let served = Arc::clone(&shared);
        let thread = on_thread(&world.pixie_ns, move || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.set_nonblocking(true).unwrap();
            ready.send(listener.local_addr().unwrap().port()).unwrap();
            while !served.stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => serve(Arc::clone(&served), stream, tls.clone()),
                    Err(_) => std::thread::park_timeout(ACCEPT_AGAIN),
                }
            }
        });
        Self {
            shared,
            port: started.recv_timeout(PATIENCE).unwrap(),
            scheme,
            thread: Some(thread),
        }
    }

    pub(crate) fn set(&self, path: &str, answer: Answer) {
        let mut answers = self.shared.answers.lock().unwrap();
        answers.insert(path.into(), answer);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}{path}", self.scheme, self.port)
    }

    /// The requests for a path so far.
    pub(crate) fn hits(&self, path: &str) -> Vec<Hit> {
        let hits = self.shared.hits.lock().unwrap();
        hits.iter()
            .filter(|hit| hit.path == path)
            .cloned()
            .collect()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

/// One request on a thread of its own. A client that goes away ends it.
fn serve(shared: Arc<Shared>, stream: TcpStream, tls: Option<Arc<rustls::ServerConfig>>) {
    std::thread::spawn(move || {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut wire: Box<dyn Wire> = match tls {
            None => Box::new(stream),
            Some(config) => {
                let tls = rustls::ServerConnection::new(config).unwrap();
                Box::new(rustls::StreamOwned::new(tls, stream))
            }
        };
        if let Err(error) = answer(&shared, &mut *wire) {
            eprintln!("file server: {error}");
        }
    });
}

fn answer(shared: &Shared, wire: &mut dyn Wire) -> std::io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(&mut *wire);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let answer = shared.answers.lock().unwrap().get(&path).cloned();
    let status = match &answer {
        None => 404,
        Some(Answer::Redirect(_)) => 302,
        Some(Answer::File(_, etag)) if head.contains(&format!("\"{etag}\"")) => 304,
        Some(_) => 200,
    };
    let hit = Hit { path, head, status };
    shared.hits.lock().unwrap().push(hit);
    write!(wire, "HTTP/1.1 {status} Status\r\nConnection: close\r\n")?;
    send(wire, status, answer)?;
    wire.flush()
}

fn send(wire: &mut dyn Wire, status: u16, answer: Option<Answer>) -> std::io::Result<()> {
    let length = |wire: &mut dyn Wire, len: usize| write!(wire, "Content-Length: {len}\r\n\r\n");
    match answer {
        None => length(wire, 0),
        Some(Answer::File(_, etag)) if status == 304 => write!(wire, "ETag: \"{etag}\"\r\n\r\n"),
        Some(Answer::File(bytes, etag)) => {
            write!(wire, "ETag: \"{etag}\"\r\n")?;
            length(wire, bytes.len())?;
            wire.write_all(&bytes)
        }
        Some(Answer::Cut(bytes)) => {
            length(wire, bytes.len())?;
            wire.write_all(&bytes[..bytes.len() / 2])
        }
        Some(Answer::Gated(bytes, gate)) => {
            length(wire, bytes.len())?;
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            wire.write_all(first)?;
            wire.flush()?;
            gate.pass();
            wire.write_all(rest)
        }
        Some(Answer::Unframed(bytes)) => {
            write!(wire, "\r\n")?;
            wire.write_all(&bytes[..bytes.len() / 2])
        }
        Some(Answer::Says(len)) => write!(wire, "Content-Length: {len}\r\n\r\n"),
        Some(Answer::Endless) => {
            write!(wire, "Transfer-Encoding: chunked\r\n\r\n")?;
            let chunk = [b'x'; 4096];
            loop {
                write!(wire, "1000\r\n")?;
                wire.write_all(&chunk)?;
                write!(wire, "\r\n")?;
            }
        }
        Some(Answer::Redirect(to)) => {
            write!(wire, "Location: {to}\r\n")?;
            length(wire, 0)
        }
    }
}
