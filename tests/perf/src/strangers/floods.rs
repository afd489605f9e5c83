//! Floods of strangers. They hold no token, and go on as fast as their bounds allow until dropped.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::ValueEnum;
use http::Request;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use strum::IntoStaticStr;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

const VERSION: &str = "/metalstack.api.v2.VersionService/Get";
/// Another address than the tenant's.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The tenant's own, as behind one NAT.
const BESIDE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Silent connections at the same time: more than the server takes.
const SILENT: usize = 4_200;
/// Connections of HTTP/2 and calls on each: together more than the server takes.
const CONNECTIONS: usize = 10;
const STREAMS: usize = 230;
/// Pause of one stranger before it calls again.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause before a stranger whose connection was ended opens another: all of them together some
/// eight hundred in a second.
const AWAY: Duration = Duration::from_secs(5);
/// Pause after calls that were given up.
const BREATH: Duration = Duration::from_millis(20);
/// Calls that are given up at once, of one connection, before a pause.
const RESETS: usize = 50;

/// A sort of flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Flood {
    /// Connections that say nothing
    Silent,
    /// The same from the tenant's own address
    SilentBeside,
    /// Calls whose body never comes
    Heads,
    /// The same from the tenant's own address
    HeadsBeside,
    /// Whole calls without a token
    Calls,
    /// Calls that are given up at once
    Resets,
}

/// Strangers at work; they stop when dropped.
pub(super) struct Strangers(#[expect(dead_code, reason = "ends its tasks")] JoinSet<()>);

type Body = BoxBody<Bytes, Infallible>;

impl Flood {
    pub(super) const ALL: [Self; 6] = [
        Self::Silent,
        Self::SilentBeside,
        Self::Heads,
        Self::HeadsBeside,
        Self::Calls,
        Self::Resets,
    ];

    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Silent => "4,200 silent connections",
            Self::SilentBeside => "4,200 silent connections, tenant's address",
            Self::Heads => "2,300 heads without a body",
            Self::HeadsBeside => "2,300 heads without a body, tenant's address",
            Self::Calls => "2,300 calls at once without a token",
            Self::Resets => "10 connections of calls that are given up",
        }
    }

    /// Returns once the flood stands.
    pub(super) async fn begin(self, to: SocketAddr) -> Result<Strangers> {
        let mut strangers = JoinSet::new();
        let from = match self {
            Self::SilentBeside | Self::HeadsBeside => BESIDE,
            _ => ELSEWHERE,
        };
        match self {
            Self::Silent | Self::SilentBeside => {
                for _ in 0..SILENT {
                    let first = connect(from, to).await?;
                    strangers.spawn(stay_silent(first, from, to));
                }
            }
            Self::Heads | Self::HeadsBeside | Self::Calls => {
                for _ in 0..CONNECTIONS {
                    let sender = speak(&mut strangers, connect(from, to).await?).await?;
                    for _ in 0..STREAMS {
                        strangers.spawn(ask(sender.clone(), self == Self::Calls));
                    }
                }
            }
            Self::Resets => {
                for _ in 0..CONNECTIONS {
                    strangers.spawn(give_up(from, to));
                }
            }
        }
        Ok(Strangers(strangers))
    }
}

async fn connect(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((IpAddr::V4(from), 0).into())?;
    socket.connect(to).await
}

/// A client that is sent away connects again.
async fn stay_silent(first: TcpStream, from: Ipv4Addr, to: SocketAddr) {
    let mut stream = Ok(first);
    loop {
        if let Ok(stream) = &mut stream {
            // Nothing comes but the end.
            drop(stream.read(&mut [0]).await);
        }
        tokio::time::sleep(AWAY).await;
        stream = connect(from, to).await;
    }
}

async fn speak(strangers: &mut JoinSet<()>, stream: TcpStream) -> Result<SendRequest<Body>> {
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    strangers.spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn request(body: Body) -> Option<Request<Body>> {
    Request::post(format!("http://stranger{VERSION}"))
        .header("content-type", "application/json")
        .body(body)
        .ok()
}

/// A body that never comes.
fn never() -> Body {
    let frames = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
    BodyExt::boxed(StreamBody::new(frames))
}

/// Calls again and again, with a body or without.
async fn ask(mut sender: SendRequest<Body>, has_body: bool) {
    loop {
        let body = if has_body {
            Full::new(Bytes::from_static(b"{}")).boxed()
        } else {
            never()
        };
        if let Some(request) = request(body) {
            // Refused or not: the next one follows.
            drop(sender.send_request(request).await);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Begins calls and gives them up; a connection that is ended for it is followed by another.
async fn give_up(from: Ipv4Addr, to: SocketAddr) {
    loop {
        let mut work = JoinSet::new();
        let opened = connect(from, to).await;
        if let Ok(stream) = opened
            && let Ok(mut sender) = speak(&mut work, stream).await
        {
            while sender.ready().await.is_ok() {
                for _ in 0..RESETS {
                    if let Some(request) = request(never()) {
                        drop(sender.send_request(request));
                    }
                }
                tokio::time::sleep(BREATH).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
