//! HTTP from the address that a machine leased: by that the boot server knows who asks.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpSocket;
use tokio::time::timeout;

const WAIT: Duration = Duration::from_secs(30);
const BODY_LEN_MAX: usize = 1 << 20;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// Reads what is behind a URL.
///
/// # Errors
/// There is no answer, or it is no success.
pub(crate) async fn get(from: Ipv4Addr, url: &str) -> Result<Bytes> {
    let answer = ask(from, Method::GET, url, Bytes::new()).await?;
    ensure!(answer.status == 200, "{url}: status {}", answer.status);
    Ok(answer.body)
}

/// Posts to a URL.
///
/// # Errors
/// There is no answer.
pub(crate) async fn post(from: Ipv4Addr, url: &str, body: String) -> Result<Answer> {
    ask(from, Method::POST, url, body.into()).await
}

async fn ask(from: Ipv4Addr, method: Method, url: &str, body: Bytes) -> Result<Answer> {
    let work = exchange(from, method, url, body);
    let answer = timeout(WAIT, work).await;
    answer
        .with_context(|| format!("{url}: no answer in time"))?
        .with_context(|| url.to_owned())
}

async fn exchange(from: Ipv4Addr, method: Method, url: &str, body: Bytes) -> Result<Answer> {
    let rest = url.strip_prefix("http://").context("not plain HTTP")?;
    let (host, path) = rest.split_once('/').context("a URL without a path")?;
    let server: SocketAddr = host.parse().context("not an address")?;
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let stream = socket.connect(server).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let request = Request::builder()
        .method(method)
        .uri(format!("/{path}"))
        .header(HOST, host)
        .body(Full::new(body))?;
    let talk = async {
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), BODY_LEN_MAX)
            .collect()
            .await;
        let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        Ok(Answer { status, body })
    };
    tokio::pin!(talk);
    tokio::select! {
        answer = &mut talk => answer,
        ended = connection => {
            ended?;
            talk.await
        }
    }
}
