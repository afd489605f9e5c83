//! The log for other processes on this host: a Unix socket in the state directory.
//!
//! A client gets the last events, a line `end`, and then every new event, each as a line of JSON.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::log::{DropEvent, DropLog};

/// Name of the socket in the state directory.
pub const SOCKET: &str = "drops.sock";
/// Between the events from before and the new ones.
const END: &str = "end";
/// Clients at one time. Another one is refused.
const CLIENTS_MAX: usize = 8;
/// Time for a client to take a line.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an error of the socket.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// Opens the socket in a directory that only the agent's user may enter. The caller must be the only
/// agent of the directory.
///
/// # Errors
/// It cannot be made.
pub fn listen(dir: &Path) -> io::Result<UnixListener> {
    let path = dir.join(SOCKET);
    // That of an agent which was killed.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves clients until it is stopped.
pub async fn serve(listener: UnixListener, log: Arc<DropLog>, stop: CancellationToken) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if clients.len() < CLIENTS_MAX => {
                    let log = Arc::clone(&log);
                    clients.spawn(async move {
                        if let Err(error) = serve_client(stream, &log).await {
                            debug!(%error, "a reader of the packet log is gone");
                        }
                    });
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
            },
        }
    }
}

async fn serve_client(mut stream: UnixStream, log: &DropLog) -> io::Result<()> {
    let (recent, mut events) = log.subscribe();
    for event in &recent {
        write_line(&mut stream, &serde_json::to_string(event)?).await?;
    }
    write_line(&mut stream, END).await?;
    while let Some(event) = events.next().await {
        write_line(&mut stream, &serde_json::to_string(&event)?).await?;
    }
    Ok(())
}

async fn write_line(stream: &mut UnixStream, line: &str) -> io::Result<()> {
    let bytes = format!("{line}\n");
    timeout(WRITE_TIMEOUT, stream.write_all(bytes.as_bytes())).await?
}

/// Reads the log of the agent with a state directory; ends after the events from before unless
/// `follow` is set.
///
/// # Errors
/// No agent runs there, `take` fails, or the agent ends.
pub async fn read(
    dir: &Path,
    follow: bool,
    mut take: impl FnMut(DropEvent) -> io::Result<()>,
) -> io::Result<()> {
    let stream = UnixStream::connect(dir.join(SOCKET)).await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        if line == END {
            if follow {
                continue;
            }
            return Ok(());
        }
        take(serde_json::from_str(&line)?)?;
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
