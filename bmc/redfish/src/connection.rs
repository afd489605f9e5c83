//! One kept-alive HTTP/1.1 connection to one BMC, opened when it is needed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, IF_MATCH, InvalidHeaderValue,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::RedfishError;
use crate::json;
use crate::trust::Trust;

/// Longest answer that is read. The largest resources in the field have some 200 KiB.
const BODY_LEN_MAX: usize = 4 << 20;

/// Where a BMC is and how it proves itself.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub trust: Trust,
}

/// How long a session waits for a BMC.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// For TCP, and once more for TLS.
    pub connect: Duration,
    /// For one request and its answer. BMCs are slow.
    pub request: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(20),
        }
    }
}

/// A user of a BMC. Printing it shows the name alone.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    #[must_use]
    pub fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }

    fn header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let text = STANDARD.encode(format!("{}:{}", self.user, self.password));
        let mut value = HeaderValue::from_str(&format!("Basic {text}"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("password", &"<redacted>")
            .finish()
    }
}

/// An answer: its status and, when there is one, its JSON.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) value: Value,
    pub(crate) etag: Option<HeaderValue>,
}

/// The connection, and what is needed to open it again.
pub(crate) struct Connection {
    endpoint: Endpoint,
    credentials: Credentials,
    timing: Timing,
    tls: Option<Arc<ClientConfig>>,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Drives the open connection; ends with it.
    driver: JoinSet<()>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(
        endpoint: Endpoint,
        credentials: Credentials,
        timing: Timing,
    ) -> Result<Self, RedfishError> {
        let tls = endpoint
            .trust
            .client_config()
            .map_err(RedfishError::TlsConfig)?;
        let driver = JoinSet::new();
        Ok(Self {
            endpoint,
            credentials,
            timing,
            tls,
            sender: None,
            driver,
        })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, RedfishError> {
        self.ask(Method::GET, path, None, None).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Result<Answer, RedfishError> {
        self.ask(Method::POST, path, Some(body), None).await
    }

    pub(crate) async fn patch(
        &mut self,
        path: &str,
        body: &Value,
        etag: Option<HeaderValue>,
    ) -> Result<Answer, RedfishError> {
        self.ask(Method::PATCH, path, Some(body), etag).await
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<HeaderValue>,
    ) -> Result<Answer, RedfishError> {
        let what = format!("{method} {path}");
        if !path.starts_with("/redfish/") || path.contains("..") {
            return Err(RedfishError::Link(path.chars().take(200).collect()));
        }
        let within = self.timing.request;
        let silent = |_| RedfishError::Silent {
            what: what.clone(),
            within,
        };
        let request =
            self.request(method, path, body, etag)
                .map_err(|reason| RedfishError::Malformed {
                    what: what.clone(),
                    reason: reason.to_string(),
                })?;
        let sender = self.sender().await?;
        let answer = timeout(within, async {
            let response =
                sender
                    .send_request(request)
                    .await
                    .map_err(|source| RedfishError::Broken {
                        what: what.clone(),
                        source,
                    })?;
            read(response, &what).await
        })
        .await
        .map_err(silent)
        .flatten();
        if answer.is_err() {
            self.sender = None;
        }
        answer
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        etag: Option<HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.endpoint.address.to_string())
            .header(ACCEPT, "application/json")
            .header("OData-Version", "4.0")
            .header(AUTHORIZATION, self.credentials.header()?);
        if let Some(etag) = etag {
            request = request.header(IF_MATCH, etag);
        }
        match body {
            Some(body) => request
                .header(CONTENT_TYPE, "application/json")
                .body(Full::from(body.to_string())),
            None => request.body(Full::default()),
        }
    }

    /// The open connection; a new one when there is none or the BMC closed it.
    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, RedfishError> {
        let open = match self.sender.take() {
            Some(mut sender) => sender.ready().await.is_ok().then_some(sender),
            None => None,
        };
        let sender = match open {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        Ok(self.sender.insert(sender))
    }

    async fn connect(&mut self) -> Result<SendRequest<Full<Bytes>>, RedfishError> {
        self.driver.abort_all();
        let within = self.timing.connect;
        let address = self.endpoint.address;
        let silent = |what: &str| RedfishError::Silent {
            what: what.into(),
            within,
        };
        let stream = timeout(within, TcpStream::connect(address))
            .await
            .map_err(|_| silent("the TCP connection"))?
            .map_err(RedfishError::Connect)?;
        match self.tls.clone() {
            None => self.drive(stream).await,
            Some(tls) => {
                let name = ServerName::IpAddress(address.ip().into());
                let stream = timeout(within, TlsConnector::from(tls).connect(name, stream))
                    .await
                    .map_err(|_| silent("the TLS handshake"))?
                    .map_err(RedfishError::Tls)?;
                self.drive(stream).await
            }
        }
    }

    async fn drive<S>(&mut self, stream: S) -> Result<SendRequest<Full<Bytes>>, RedfishError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) =
            handshake(TokioIo::new(stream))
                .await
                .map_err(|source| RedfishError::Broken {
                    what: "the start of HTTP".into(),
                    source,
                })?;
        self.driver.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection to BMC ended");
            }
        });
        Ok(sender)
    }
}

async fn read(
    response: Response<hyper::body::Incoming>,
    what: &str,
) -> Result<Answer, RedfishError> {
    let status = response.status();
    let etag = response.headers().get(hyper::header::ETAG).cloned();
    let body = Limited::new(response.into_body(), BODY_LEN_MAX)
        .collect()
        .await
        .map_err(|_| RedfishError::Body {
            what: what.into(),
            max: BODY_LEN_MAX,
        })?
        .to_bytes();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(RedfishError::Denied {
            what: what.into(),
            status: status.as_u16(),
        });
    }
    if !status.is_success() {
        let message = json::error_message(&body);
        return Err(RedfishError::Status {
            what: what.into(),
            status: status.as_u16(),
            message,
        });
    }
    // An action or a change may be answered with nothing, or with words.
    let value = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(_) if !what.starts_with("GET") => Value::Null,
        Err(error) => {
            let reason = error.to_string();
            return Err(RedfishError::Malformed {
                what: what.into(),
                reason,
            });
        }
    };
    Ok(Answer { value, etag })
}
