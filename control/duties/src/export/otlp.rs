//! Export to a collector of OpenTelemetry: logs over HTTP with JSON (OTLP 1.x).

use std::sync::Arc;
use std::time::Duration;

use control_state::AuditEntry;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};

use super::error::OtlpError;
use super::record::{self, Severity};

/// Time limit of one batch.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum characters of a refusal that an error repeats. The rest is cut.
const REASON_CHARS_MAX: usize = 300;

/// A collector of OpenTelemetry.
pub(super) struct Otlp {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
    cluster: String,
}

impl Otlp {
    /// A collector at `url` for the records of `cluster`.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub(super) fn new(
        url: Url,
        authorization: Option<HeaderValue>,
        tls: Option<rustls::ClientConfig>,
        cluster: &str,
    ) -> Result<Self, reqwest::Error> {
        let mut builder = Client::builder().timeout(TIMEOUT);
        if let Some(tls) = tls {
            builder = builder.tls_backend_preconfigured(tls);
        }
        Ok(Self {
            client: builder.build()?,
            url,
            authorization,
            cluster: cluster.to_owned(),
        })
    }

    /// Sends records. The collector has them when this returns.
    pub(super) async fn send(&self, entries: &[Arc<AuditEntry>]) -> Result<(), OtlpError> {
        let body = request(entries, &self.cluster).to_string();
        let mut call = self.client.post(self.url.clone()).body(body);
        call = call.header(CONTENT_TYPE, "application/json");
        if let Some(value) = &self.authorization {
            call = call.header(AUTHORIZATION, value.clone());
        }
        let answer = call.send().await.map_err(|error| {
            // The caller logs the target's name, so the URL is left out of the error.
            OtlpError::Unreachable(error.without_url())
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let reason = answer.text().await.unwrap_or_default();
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        let reason = format!("HTTP {status} {}", reason.trim().escape_debug());
        // The specification forbids a retry for these statuses (OTLP, "Failures"). A retry would
        // block all later records behind one that is never accepted.
        let never = [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY];
        if never.contains(&status) {
            return Err(OtlpError::Refused(reason));
        }
        Err(OtlpError::NotNow(reason))
    }
}

/// `ExportLogsServiceRequest` as JSON.
fn request(entries: &[Arc<AuditEntry>], cluster: &str) -> Value {
    let records: Vec<Value> = entries.iter().map(|entry| log_record(entry)).collect();
    json!({"resourceLogs": [{
        "resource": {"attributes": [
            text("service.name", "metalmeshd"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("metalmesh.cluster", cluster),
        ]},
        "scopeLogs": [{
            "scope": {"name": "metalmesh.audit"},
            "logRecords": records,
        }],
    }]})
}

fn log_record(entry: &AuditEntry) -> Value {
    let (number, name) = Severity::of(entry).otel();
    let nanos = |ms: u64| (u128::from(ms) * 1_000_000).to_string();
    let observed = entry.ended.unwrap_or(entry.time);
    let mut attributes = vec![
        text("event.name", "metalmesh.audit"),
        text("user.id", &entry.user),
        text("metalmesh.tenant", &entry.tenant),
        text("rpc.method", &entry.method),
        text("client.address", &entry.source_ip),
    ];
    if let Some(project) = &entry.project {
        attributes.push(text("metalmesh.project", project));
    }
    if let Some(code) = entry.result_code {
        let code = json!({"key": "rpc.grpc.status_code", "value": {"intValue": code.to_string()}});
        attributes.push(code);
    }
    json!({
        "timeUnixNano": nanos(entry.time.ms()),
        "observedTimeUnixNano": nanos(observed.ms()),
        "severityNumber": number,
        "severityText": name,
        "body": {"stringValue": record::json(entry).to_string()},
        "attributes": attributes,
    })
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

#[cfg(test)]
mod tests {
    use super::record::tests::entry;
    use super::*;

    #[test]
    fn a_request() {
        let request = request(&[Arc::new(entry(7))], "east");
        let logs = &request["resourceLogs"][0];
        let cluster = &logs["resource"]["attributes"][2];
        assert_eq!(cluster, &text("metalmesh.cluster", "east"));
        let record = &logs["scopeLogs"][0]["logRecords"][0];
        assert_eq!(record["timeUnixNano"], "1700000000123000000");
        assert_eq!(record["observedTimeUnixNano"], "1700000000200000000");
        assert_eq!(record["severityNumber"], 9);
        let body = record["body"]["stringValue"].as_str().unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["sequence"], 7);
    }
}
