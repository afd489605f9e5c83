//! A small HTTP/1.1 client: GET of images, POST to pixie. TLS is rustls with *ring*.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderName, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::resolve::Resolver;

/// Longest time to connect. Beyond it the request fails.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Longest time from the request to the head of its response, TLS handshake included, and again for
/// a JSON body. Beyond it the request fails.
const HEAD_LIMIT: Duration = Duration::from_secs(60);
/// Requests of one GET at most, each but the first after a redirect.
const REDIRECTS_MAX: usize = 5;
/// Longest JSON response, bytes; a longer one is an error. Pixie's are a few KiB.
const JSON_MAX: usize = 64 * 1024;
/// Trusted certificate authorities, part of the initramfs.
const CA_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
/// `User-Agent` of all requests.
const AGENT: &str = concat!("metalmesh-hammer/", env!("CARGO_PKG_VERSION"));

/// The HTTP client. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Http {
    resolver: Resolver,
}

impl Http {
    /// A client that resolves names by `resolver`.
    #[must_use]
    pub fn new(resolver: Resolver) -> Self {
        Self { resolver }
    }

    /// GETs a URL and follows redirects. `extra` has further headers, such as a range.
    ///
    /// # Errors
    /// When no response comes, or too many redirects. A response of any status is no error.
    pub async fn get(&self, url: &str, extra: &[(&'static str, String)]) -> Result<Answer> {
        let mut uri: Uri = url.parse().context("not a URL")?;
        for _ in 0..REDIRECTS_MAX {
            let mut request = Request::builder().method(Method::GET);
            // A redirect gets the same headers: image servers often redirect to a store, which must
            // see the range.
            for (name, value) in extra {
                request = request.header(*name, value);
            }
            let answer = self.send(&uri, request, Bytes::new()).await?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let location = answer
                .header(LOCATION)
                .context("a redirect without a location")?;
            uri = redirect(&uri, location)?;
        }
        bail!("more than {REDIRECTS_MAX} redirects")
    }

    /// POSTs JSON and returns status and body of the response.
    ///
    /// # Errors
    /// When no response comes, or one of more than 64 KiB.
    pub async fn post_json(&self, url: &str, body: String) -> Result<(u16, Vec<u8>)> {
        let uri: Uri = url.parse().context("not a URL")?;
        let request = Request::builder()
            .method(Method::POST)
            .header("content-type", "application/json");
        let mut answer = self.send(&uri, request, Bytes::from(body)).await?;
        let mut out = Vec::new();
        let read = async {
            while let Some(piece) = answer.next().await? {
                out.extend_from_slice(&piece);
                ensure!(out.len() <= JSON_MAX, "the response is too long");
            }
            Ok(())
        };
        tokio::time::timeout(HEAD_LIMIT, read)
            .await
            .context("the response stalls")??;
        Ok((answer.status().as_u16(), out))
    }

    async fn send(
        &self,
        uri: &Uri,
        request: hyper::http::request::Builder,
        body: Bytes,
    ) -> Result<Answer> {
        let host = uri.host().context("a URL without a host")?;
        // The brackets are syntax of IPv6 literals in URLs (RFC 3986 §3.2.2). Neither an address
        // nor the name in a certificate has them.
        let host = host.trim_matches(['[', ']']);
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(other) => bail!("URL scheme {other} is not supported"),
            None => bail!("a URL without a scheme"),
        };
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let address = SocketAddr::new(self.resolver.resolve(host).await?, port);
        let stream = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(address))
            .await
            .with_context(|| format!("no answer from {address}"))?
            .with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let path = uri.path_and_query().map_or("/", |p| p.as_str());
        let authority = uri.authority().context("a URL without a host")?;
        let request = request
            // Origin form (RFC 9112 §3.2.1): a server that is no proxy may refuse a whole URL here.
            .uri(path)
            .header(HOST, authority.as_str())
            .header(USER_AGENT, AGENT)
            .body(Full::new(body))?;
        // The limit ends with the head: an image's body takes as long as it takes, and its reader
        // has a limit of its own for a stalled server.
        let exchange = async {
            if tls {
                let name = ServerName::try_from(host.to_string())?;
                let stream = connector()?.connect(name, stream).await?;
                exchange(stream, request).await
            } else {
                exchange(stream, request).await
            }
        };
        tokio::time::timeout(HEAD_LIMIT, exchange)
            .await
            .context("the server does not answer")?
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .handshake(TokioIo::new(stream))
        .await?;
    let mut task = JoinSet::new();
    task.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "HTTP connection ended");
        }
    });
    Ok(Answer {
        response: sender.send_request(request).await?,
        _connection: task,
    })
}

/// A response whose body is not read yet. Dropping it closes the connection.
#[derive(Debug)]
pub struct Answer {
    response: Response<Incoming>,
    _connection: JoinSet<()>,
}

impl Answer {
    /// The response's status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// A header's text. `None` if it is missing or not text.
    #[must_use]
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next piece of the body. `None` at its end.
    ///
    /// # Errors
    /// When the connection breaks before the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        loop {
            match self.response.body_mut().frame().await {
                None => return Ok(None),
                Some(frame) => {
                    // Fails for trailers, which are no part of the body.
                    if let Ok(data) = frame?.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// A TLS connector that trusts the CA bundle of the initramfs.
fn connector() -> Result<TlsConnector> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(CA_BUNDLE).context(CA_BUNDLE)? {
        roots.add(certificate?)?;
    }
    ensure!(!roots.is_empty(), "no certificates in {CA_BUNDLE}");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The target of a redirect.
///
/// # Errors
/// When it leads from https to http, which would let the network replace the image, or is no URL.
fn redirect(from: &Uri, location: &str) -> Result<Uri> {
    let scheme = from.scheme_str().unwrap_or("http");
    // Two slashes begin with a host, and leave only the scheme as it was (RFC 3986 §4.2).
    let to = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        let authority = from.authority().context("no host")?;
        format!("{scheme}://{authority}{location}")
    } else {
        location.to_string()
    };
    let to: Uri = to.parse().context("a redirect to no URL")?;
    let downgrade = from.scheme_str() == Some("https") && to.scheme_str() != Some("https");
    ensure!(!downgrade, "a redirect from https to plain http");
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects() {
        let from: Uri = "https://a/x".parse().unwrap();
        for (location, want) in [
            ("/y?z", Some("https://a/y?z")),
            ("https://b/y", Some("https://b/y")),
            ("//b/y", Some("https://b/y")),
            ("http://a/y", None),
        ] {
            let to = redirect(&from, location).ok().map(|u| u.to_string());
            assert_eq!(to.as_deref(), want, "{location}");
        }
    }
}
