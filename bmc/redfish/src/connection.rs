//! One kept-alive HTTP/1.1 connection to one BMC, opened on demand.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, IF_MATCH};
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

use crate::endpoint::{Credentials, Endpoint, Timing};
use crate::error::RedfishError;
use crate::json;

/// Longest answer that is read, bytes. A longer one is an error. The largest resources in the field
/// have about 200 KiB.
const BODY_LEN_MAX: usize = 4 << 20;

/// Longest path of a resource, bytes. A link with a longer one is an error.
const PATH_LEN_MAX: usize = 1024;

/// A successful answer: its JSON, null if it has none, and its `ETag`.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) value: Value,
    pub(crate) etag: Option<HeaderValue>,
}

/// The connection and the parameters to reopen it.
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
        // Paths come from the BMC's own links. A path out of the service would take the password to
        // another resource, and the BMC could relay a full URL to another host.
        // A long path would also make a long error.
        let is_own = path.starts_with("/redfish/") && !path.contains("..");
        if !is_own || path.len() > PATH_LEN_MAX {
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
        // After an error the rest of an answer may still be on its way. On the same connection the
        // next request would wait for it or fail with it.
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

    /// The open connection, or a new one if there is none or the BMC has closed it.
    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, RedfishError> {
        let open = match self.sender.take() {
            Some(mut sender) => {
                let ready = timeout(self.timing.request, sender.ready()).await;
                ready.is_ok_and(|ready| ready.is_ok()).then_some(sender)
            }
            None => None,
        };
        let sender = match open {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        Ok(self.sender.insert(sender))
    }

    async fn connect(&mut self) -> Result<SendRequest<Full<Bytes>>, RedfishError> {
        // The previous connection must not stay open beside the new one: BMCs serve few at a time.
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
    // An action or a change may be answered without a body or with plain text.
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
