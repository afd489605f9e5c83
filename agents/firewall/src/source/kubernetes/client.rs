use std::fmt;
use std::time::Duration;

use base_runtime::Chain;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use super::{Kubeconfig, KubernetesError, WatchLines};

/// Time to connect, TLS included in `HEAD_TIMEOUT`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time until the head of an answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time until the end of the body of an answer that is no watch.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two pings of a connection, and time for their answer: a server that is gone
/// without a word is noticed after both.
const PING: Duration = Duration::from_secs(15);
/// Largest body of an error, bytes. The rest is not read.
const ERROR_LEN_MAX: usize = 64 * 1024;

/// A client of one API server. Every answer is bounded.
pub struct KubernetesClient {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    kubeconfig: Kubeconfig,
}

impl fmt::Debug for KubernetesClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KubernetesClient")
            .field("kubeconfig", &self.kubeconfig)
            .finish_non_exhaustive()
    }
}

impl KubernetesClient {
    /// A client that is not connected yet.
    #[must_use]
    pub fn new(kubeconfig: Kubeconfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.enforce_http(false);
        let builder = HttpsConnectorBuilder::new()
            .with_tls_config(kubeconfig.tls.clone())
            .https_only();
        let builder = match kubeconfig.server_name.clone() {
            Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
            None => builder,
        };
        let connector = builder.enable_all_versions().wrap_connector(tcp);
        let http = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING)
            .build(connector);
        Self { http, kubeconfig }
    }

    /// Reads an object or a list. `what` completes "may not …" in errors.
    ///
    /// # Errors
    /// The server did not answer with success, or with more than `bytes_max` bytes.
    pub async fn get(
        &self,
        path: &str,
        what: &str,
        bytes_max: usize,
    ) -> Result<Vec<u8>, KubernetesError> {
        let answer = self.send(Method::GET, path, Bytes::new(), what).await?;
        let mut body = answer.into_body();
        let reading = async {
            let mut bytes = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| unreachable(&error))?;
                let Some(data) = frame.data_ref() else {
                    continue;
                };
                if bytes.len() + data.len() > bytes_max {
                    return Err(KubernetesError::TooLarge {
                        what: what.to_owned(),
                        limit: format!("{bytes_max} bytes"),
                    });
                }
                bytes.extend_from_slice(data);
            }
            Ok(bytes)
        };
        let read = timeout(BODY_TIMEOUT, reading).await;
        read.map_err(|_| KubernetesError::Timeout)?
    }

    /// Opens a watch.
    ///
    /// # Errors
    /// The server did not answer with success.
    pub async fn watch(&self, path: &str, what: &str) -> Result<WatchLines, KubernetesError> {
        let answer = self.send(Method::GET, path, Bytes::new(), what).await?;
        Ok(WatchLines::new(answer.into_body()))
    }

    /// Changes fields of an object, by a merge patch.
    ///
    /// # Errors
    /// The server did not answer with success.
    pub async fn merge_patch(
        &self,
        path: &str,
        what: &str,
        patch: &serde_json::Value,
    ) -> Result<(), KubernetesError> {
        let body = Bytes::from(patch.to_string());
        self.send(Method::PATCH, path, body, what).await?;
        Ok(())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        what: &str,
    ) -> Result<Response<Incoming>, KubernetesError> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.uri(path)?)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/merge-patch+json")
            .header(USER_AGENT, "metalmesh-firewall");
        if let Some(authorization) = &self.kubeconfig.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body)).map_err(bad_path)?;
        let answer = timeout(HEAD_TIMEOUT, self.http.request(request)).await;
        let answer = answer.map_err(|_| KubernetesError::Timeout)?;
        let answer = answer.map_err(|error| unreachable(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        // Redirects are not followed: they would take the credential elsewhere.
        let status = answer.status().as_u16();
        let body = http_body_util::Limited::new(answer.into_body(), ERROR_LEN_MAX).collect();
        let bytes = match timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            _ => Bytes::new(),
        };
        Err(KubernetesError::of_status(what, status, &bytes))
    }

    fn uri(&self, path: &str) -> Result<Uri, KubernetesError> {
        let server = &self.kubeconfig.server;
        let begin = server.path().trim_end_matches('/');
        let authority = server
            .authority()
            .map_or("", |authority| authority.as_str());
        let uri = Uri::builder()
            .scheme("https")
            .authority(authority)
            .path_and_query(format!("{begin}{path}"));
        uri.build().map_err(bad_path)
    }
}

fn bad_path(error: http::Error) -> KubernetesError {
    KubernetesError::Malformed {
        reason: format!("the path of a request: {error}"),
    }
}

pub(super) fn unreachable(error: &(dyn std::error::Error + 'static)) -> KubernetesError {
    KubernetesError::Unreachable {
        reason: Chain(error).to_string(),
    }
}
