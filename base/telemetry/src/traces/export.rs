//! Spans on their way to a collector.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::traces::collector::{Collector, CollectorError};
use crate::traces::{Span, otlp};

/// Longest error text in a span, characters. The rest is cut.
pub const ERROR_CHARS_MAX: usize = 256;
/// Spans that may wait.
const QUEUE_MAX: usize = 4096;
/// Spans of one request.
const BATCH_MAX: usize = 256;
/// A batch is gathered for so long.
const GATHER: Duration = Duration::from_millis(500);
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a batch is tried; spans are of no use later.
const ATTEMPTS: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a stop waits for the batch on its way, and for the one after it.
const LAST: Duration = Duration::from_secs(2);

/// Where spans go. Cheap to clone; the default goes nowhere.
#[derive(Clone, Debug, Default)]
pub struct Spans(Option<Arc<Queue>>);

#[derive(Debug)]
struct Queue {
    spans: mpsc::Sender<Span>,
    dropped: AtomicU64,
}

impl Spans {
    /// Sends spans of `service` to a collector until `stop`.
    ///
    /// # Errors
    /// When the collector cannot be used at all.
    pub fn spawn(
        tasks: &mut JoinSet<()>,
        collector: Collector,
        service: &'static str,
        resource: Vec<(&'static str, String)>,
        stop: CancellationToken,
    ) -> Result<Self, CollectorError> {
        let (spans, queue) = mpsc::channel(QUEUE_MAX);
        let sender = Sender::new(collector, service, resource)?;
        tasks.spawn(sender.run(queue, stop));
        Ok(Self(Some(Arc::new(Queue {
            spans,
            dropped: AtomicU64::new(0),
        }))))
    }

    /// `true` if a collector is configured.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// One more; dropped when the queue is full.
    pub fn put(&self, span: Span) {
        let Some(queue) = &self.0 else { return };
        let mut span = span;
        if let Some(error) = &mut span.error
            && let Some((end, _)) = error.char_indices().nth(ERROR_CHARS_MAX)
        {
            error.truncate(end);
        }
        if span.context.is_sampled && queue.spans.try_send(span).is_err() {
            let dropped = queue.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                warn!(
                    dropped,
                    "spans were dropped: the collector does not keep up"
                );
            }
        }
    }
}

struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
    authorization: Option<HeaderValue>,
    service: &'static str,
    resource: Vec<(&'static str, String)>,
}

impl Sender {
    fn new(
        collector: Collector,
        service: &'static str,
        resource: Vec<(&'static str, String)>,
    ) -> Result<Self, CollectorError> {
        let url: Result<Uri, _> = collector.url.parse();
        let is_http = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https"));
        if collector.url.contains('@') {
            return Err(CollectorError::Login);
        }
        let url = url.ok().filter(|url| is_http(url) && url.host().is_some());
        let url = url.ok_or_else(|| CollectorError::Url(collector.url.clone()))?;
        let authorization = collector.authorization.as_deref().map(|text| {
            let mut value = HeaderValue::from_str(text.trim())?;
            value.set_sensitive(true);
            Ok::<_, http::header::InvalidHeaderValue>(value)
        });
        let authorization = authorization.transpose();
        let authorization = authorization.map_err(|_| CollectorError::Authorization)?;
        let tls = match collector.tls {
            Some(tls) => tls,
            None => rustls::ClientConfig::builder()
                .with_platform_verifier()
                .map_err(CollectorError::Tls)?
                .with_no_client_auth(),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            url,
            authorization,
            service,
            resource,
        })
    }

    async fn run(self, mut queue: mpsc::Receiver<Span>, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            let more = tokio::select! {
                () = stop.cancelled() => break,
                more = queue.recv_many(&mut batch, BATCH_MAX) => more,
            };
            if more == 0 {
                return;
            }
            if batch.len() < BATCH_MAX {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = sleep(GATHER) => {}
                }
                while batch.len() < BATCH_MAX
                    && let Ok(span) = queue.try_recv()
                {
                    batch.push(span);
                }
            }
            self.send_until(&batch, &stop).await;
            batch.clear();
        }
        // The last spans before a stop are the most useful ones, so the queue is still sent.
        while batch.len() < BATCH_MAX
            && let Ok(span) = queue.try_recv()
        {
            batch.push(span);
        }
        if !batch.is_empty() {
            last(self.send(&batch)).await;
        }
    }

    /// Sends a batch that a stop gives a little time only, and does not cut off: the collector may have
    /// its spans already, and sent again they would be there twice.
    async fn send_until(&self, batch: &[Span], stop: &CancellationToken) {
        let mut sending = pin!(self.send(batch));
        tokio::select! {
            () = &mut sending => {}
            () = stop.cancelled() => last(sending).await,
        }
    }

    async fn send(&self, batch: &[Span]) {
        let body = Bytes::from(otlp::request(self.service, &self.resource, batch));
        for attempt in 1..=ATTEMPTS {
            let error = match timeout(TIMEOUT, self.post(body.clone())).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => "no answer in time".to_owned(),
            };
            if attempt == ATTEMPTS {
                warn!(
                    error,
                    spans = batch.len(),
                    "spans were lost: the collector did not take them"
                );
                return;
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), String> {
        let mut request =
            Request::post(self.url.clone()).header(CONTENT_TYPE, "application/x-protobuf");
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value.clone());
        }
        let request = request.body(Full::new(body)).map_err(|e| e.to_string())?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|e| format!("it cannot be reached: {e}"))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("HTTP {status}")),
        }
    }
}

/// Gives a batch a little time after the stop.
async fn last(sending: impl Future<Output = ()>) {
    if timeout(LAST, sending).await.is_err() {
        debug!("the last spans were not sent");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::traces::{SpanKind, TraceContext};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn span() -> Span {
        Span {
            context: TraceContext::root(),
            parent: None,
            name: "boot-pxe".into(),
            kind: SpanKind::Consumer,
            began_ns: 1,
            ended_ns: 2,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }

    #[tokio::test]
    async fn a_stop_does_not_send_again_what_is_on_its_way() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let collector = Collector {
            url: format!("http://{address}/v1/traces"),
            authorization: None,
            tls: None,
        };
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        let spans = Spans::spawn(&mut tasks, collector, "test", Vec::new(), stop.clone()).unwrap();
        spans.put(span());

        let (mut first, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        let read = timeout(PATIENCE, first.read(&mut [0; 4096])).await;
        assert!(read.unwrap().unwrap() > 0);
        stop.cancel();
        // The collector answers late. It sees a second request, on this or another connection, if there
        // is one.
        tokio::task::yield_now().await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        first.write_all(answer).await.unwrap();
        let ended = async { while tasks.join_next().await.is_some() {} };
        tokio::select! {
            () = ended => {}
            again = listener.accept() => panic!("a second connection: {again:?}"),
        }
    }
}
