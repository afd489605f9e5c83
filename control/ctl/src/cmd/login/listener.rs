//! A loopback HTTP listener, to which the login redirects the browser with the token.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use uuid::Uuid;

/// Largest request, bytes. The connection of a larger one is dropped.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// Longest time for one request. A slower connection is dropped, so that it cannot block the login.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the browser to load the final page, after the token was received.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// The target of the login's redirect. Its path is random and secret, so that no other web page can
/// inject the token of another user.
pub(super) struct TokenListener {
    socket: TcpListener,
    path: String,
}

impl TokenListener {
    pub(super) async fn bind() -> Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        Ok(Self {
            socket: socket.context("cannot listen on 127.0.0.1")?,
            path: format!("/callback/{}", Uuid::new_v4().simple()),
        })
    }

    pub(super) fn url(&self) -> Result<String> {
        Ok(format!("http://{}{}", self.socket.local_addr()?, self.path))
    }

    /// Waits for the request with the token.
    pub(super) async fn token(&self) -> Result<String> {
        loop {
            let (mut stream, _) = self.socket.accept().await?;
            let token = match target(&mut stream).await {
                Some(target) => token(&target, &self.path),
                None => continue,
            };
            let Some(token) = token else {
                answer(&mut stream, "404 Not Found", "", "Not found.").await;
                continue;
            };
            // The redirect removes the token from the browser's address bar and history.
            let away = format!("Location: {}/done\r\n", self.path);
            answer(&mut stream, "303 See Other", &away, "").await;
            let farewell = timeout(FAREWELL_TIMEOUT, self.farewell()).await;
            drop(farewell);
            return Ok(token);
        }
    }

    async fn farewell(&self) -> Result<()> {
        loop {
            let (mut stream, _) = self.socket.accept().await?;
            let found = target(&mut stream).await;
            let is_done = found.is_some_and(|target| target == format!("{}/done", self.path));
            if is_done {
                let text = "You are logged in. You can close this window.";
                answer(&mut stream, "200 OK", "", text).await;
                return Ok(());
            }
            answer(&mut stream, "404 Not Found", "", "Not found.").await;
        }
    }
}

/// Path and query of a GET request. `None` if the request is not valid, too large or too slow.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let read = async {
        let mut piece = [0; 2048];
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            let count = stream.read(&mut piece).await.ok()?;
            if count == 0 || request.len() + count > REQUEST_BYTES_MAX {
                return None;
            }
            request.extend_from_slice(piece.get(..count)?);
        }
        Some(())
    };
    timeout(REQUEST_TIMEOUT, read).await.ok()??;
    let request = String::from_utf8(request).ok()?;
    let (target, _) = request.strip_prefix("GET ")?.split_once(' ')?;
    Some(target.to_owned())
}

/// The token in the query of a target with this path. Tokens need no percent-decoding.
fn token(target: &str, path: &str) -> Option<String> {
    let (found, query) = target.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, token) = pairs.find(|(name, _)| *name == "token")?;
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (found == path && !token.is_empty() && token.bytes().all(is_plain)).then(|| token.to_owned())
}

async fn answer(stream: &mut TcpStream, status: &str, header: &str, text: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\n{header}Content-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    );
    if let Err(error) = stream.write_all(text.as_bytes()).await {
        tracing::debug!(error = %error, "the browser closed the connection");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_path_counts() {
        let path = "/callback/0123";
        assert_eq!(
            token("/callback/0123?token=a.b-c_d", path).as_deref(),
            Some("a.b-c_d")
        );
        assert_eq!(
            token("/callback/0123?x=y&token=a", path).as_deref(),
            Some("a")
        );
        for bad in [
            "/callback/0123",
            "/callback/0123?token=",
            "/callback/0123?token=a%20b",
            "/callback?token=a",
            "/callback/0124?token=a",
            "/?token=a",
        ] {
            assert_eq!(token(bad, path), None, "{bad}");
        }
    }
}
