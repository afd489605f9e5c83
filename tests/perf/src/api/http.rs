//! The one HTTP client for both systems: HTTP/1.1, kept alive, JSON, one call at a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Bytes of an answer that an error repeats.
const SHOWN_BYTES: usize = 300;

/// What is asked of a server.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Drives the connection; ends with the client.
    drivers: JoinSet<()>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            sender: None,
            drivers: JoinSet::new(),
        }
    }

    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            self.drivers.abort_all();
            self.drivers.spawn(async move {
                // What broke is told to the call that was on its way.
                drop(connection.await);
            });
            self.sender = Some(sender);
        }
        self.sender.as_mut().context("there is no connection")
    }

    /// The whole answer, and how long it took from before the first byte went out.
    pub(crate) async fn call(&mut self, call: &Call) -> Result<(Bytes, Duration)> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(HOST, self.address.to_string());
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(call.body.clone()))?;
        let began = Instant::now();
        let exchange = async {
            let sender = self.sender().await?;
            sender.ready().await?;
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            anyhow::Ok((status, body))
        };
        let (status, body) = tokio::time::timeout(ANSWER_TIMEOUT, exchange)
            .await
            .with_context(|| format!("{} {} took too long", call.method, call.path))?
            .with_context(|| format!("{} {}", call.method, call.path))?;
        let took = began.elapsed();
        if !status.is_success() {
            let shown = &body[..body.len().min(SHOWN_BYTES)];
            let shown = String::from_utf8_lossy(shown);
            bail!("{} {}: {status}: {shown}", call.method, call.path);
        }
        Ok((body, took))
    }

    /// The answer as JSON.
    pub(crate) async fn json(&mut self, call: &Call) -> Result<Value> {
        let (body, _) = self.call(call).await?;
        serde_json::from_slice(&body).with_context(|| format!("{} answered no JSON", call.path))
    }
}
