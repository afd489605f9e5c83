//! A small HTTP server for images: what an object store is to a real partition.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

const HEADERS_MAX: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Serves the files of one directory until the process ends. Knows GET, HEAD and `Range: bytes=N-`.
///
/// # Errors
/// The address cannot be bound.
pub fn run(dir: &Path, address: &str) -> Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot bind {address}"))?;
    for stream in listener.incoming().flatten() {
        let dir = dir.to_owned();
        std::thread::Builder::new()
            .name("image".into())
            .spawn(move || {
                if let Err(error) = answer(&stream, &dir) {
                    eprintln!("{error:#}");
                }
            })?;
    }
    Ok(())
}

struct Request {
    method: String,
    file: PathBuf,
    from: u64,
}

fn answer(mut stream: &TcpStream, dir: &Path) -> Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = read_request(stream, dir)?;
    let Ok(mut file) = File::open(&request.file) else {
        write!(
            stream,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        bail!("no {}", request.file.display());
    };
    let total = file.metadata()?.len();
    let from = request.from.min(total);
    file.seek(SeekFrom::Start(from))?;
    let status = if from > 0 {
        "206 Partial Content"
    } else {
        "200 OK"
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\nConnection: close\r\n",
        total - from
    )?;
    if from > 0 {
        write!(
            stream,
            "Content-Range: bytes {from}-{}/{total}\r\n",
            total.saturating_sub(1)
        )?;
    }
    write!(stream, "\r\n")?;
    if request.method == "GET" {
        let sent = std::io::copy(&mut file, &mut stream);
        eprintln!("{} from {from}: {sent:?}", request.file.display());
    }
    Ok(())
}

fn read_request(stream: &TcpStream, dir: &Path) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let name = words
        .next()
        .unwrap_or_default()
        .trim_start_matches('/')
        .to_owned();
    if name.is_empty() || name.contains('/') || name.contains("..") {
        bail!("refused: {line:?}");
    }
    let mut from = 0;
    for _ in 0..HEADERS_MAX {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap_or(0);
        }
    }
    Ok(Request {
        method,
        file: dir.join(name),
        from,
    })
}
