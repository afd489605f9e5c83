//! The audit trail: what was asked and what came of it, in the replicated state.
//!
//! Calls put their records into a bounded queue; one writer gathers what waits and proposes it
//! as one command. A full queue holds calls up rather than losing records.

use control_authz::{Permit, SystemActor};
use control_state::{AppendAudit, AuditEntry, AuditPhase, Command};
use control_store::Store;
use proto_types::{ProjectId, Timestamp};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Code;

/// Records that may wait for the writer.
const QUEUE_MAX: usize = 1024;
/// Records in one command.
const BATCH_MAX: usize = 128;
/// Longest body that is kept, in bytes.
const BODY_BYTES_MAX: usize = 4096;
/// Fields that may hold secrets, in any message, as JSON names them.
const SECRET_FIELDS: [&str; 6] = [
    "userdata",
    "password",
    "secret",
    "authKey",
    "consolePassword",
    "token",
];

/// One call.
#[derive(Debug, Clone)]
pub struct Record {
    /// Id of the call.
    pub id: String,
    /// When it came.
    pub time: Timestamp,
    /// Who called.
    pub user: String,
    /// `login`, `project`, `uuid`: what `subject` is.
    pub scope: Option<&'static str>,
    /// Whom it is about.
    pub subject: Option<String>,
    /// Path of the method.
    pub method: String,
    /// The request as JSON without secrets.
    pub body: Option<String>,
    /// Address of the caller.
    pub source_ip: String,
}

impl Record {
    fn entries(self, code: Code, ended: Timestamp) -> [AuditEntry; 2] {
        let project = self
            .subject
            .clone()
            .filter(|_| self.scope == Some("project"));
        let tenant = self
            .subject
            .filter(|_| self.scope == Some("login"))
            .unwrap_or_default();
        let request = AuditEntry {
            sequence: 0,
            id: self.id,
            time: self.time,
            user: self.user,
            tenant,
            project,
            method: self.method,
            body: self.body,
            source_ip: self.source_ip,
            result_code: None,
            phase: AuditPhase::Request,
        };
        let response = AuditEntry {
            time: ended,
            body: None,
            result_code: Some(code.into()),
            phase: AuditPhase::Response,
            ..request.clone()
        };
        [request, response]
    }
}

/// Where records go.
#[derive(Debug, Clone)]
pub struct AuditTrail {
    queue: mpsc::Sender<[AuditEntry; 2]>,
}

/// Writes records into the state; see [`AuditWriter::run`].
#[derive(Debug)]
pub struct AuditWriter {
    queue: mpsc::Receiver<[AuditEntry; 2]>,
    store: Store,
}

impl AuditTrail {
    /// A trail and the writer that has to run for it.
    pub fn new(store: Store) -> (Self, AuditWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        (
            Self { queue: sender },
            AuditWriter {
                queue: receiver,
                store,
            },
        )
    }

    /// Puts the record of a call that ended; waits while the queue is full.
    pub async fn put(&self, record: Record, code: Code, ended: Timestamp) {
        if self.queue.send(record.entries(code, ended)).await.is_err() {
            tracing::error!("an audit record came after the writer ended");
        }
    }

    /// The same where one cannot wait.
    pub fn try_put(&self, record: Record, code: Code, ended: Timestamp) {
        let (method, user) = (record.method.clone(), record.user.clone());
        if self.queue.try_send(record.entries(code, ended)).is_err() {
            tracing::error!(method, user, "an audit record was lost: its queue is full");
        }
    }
}

impl AuditWriter {
    /// Runs until stopped, then writes what still waits.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            let open = tokio::select! {
                () = stop.cancelled() => false,
                count = self.queue.recv_many(&mut batch, BATCH_MAX) => count > 0,
            };
            if !open {
                self.queue.close();
                while self.queue.recv_many(&mut batch, BATCH_MAX).await > 0 {}
            }
            self.write(std::mem::take(&mut batch)).await;
            if !open {
                return;
            }
        }
    }

    async fn write(&self, batch: Vec<[AuditEntry; 2]>) {
        let permit = Permit::system(SystemActor::Audit);
        for chunk in batch.chunks(BATCH_MAX) {
            let entries: Vec<AuditEntry> = chunk.iter().flatten().cloned().collect();
            let command = Command::new(self.store.now(), "audit", AppendAudit { entries });
            if let Err(error) = self.store.propose(&permit, &command).await {
                // The log is the trail of last resort.
                for entry in chunk.iter().flatten() {
                    tracing::error!(error = %error, entry = ?entry, "an audit record was not stored");
                }
            }
        }
    }
}

/// A request without its secrets, bounded; the time of a project id stays whole.
pub(crate) fn redacted(json: &[u8]) -> String {
    let Ok(mut value) = serde_json::from_slice(json) else {
        return String::new();
    };
    redact(&mut value);
    let mut text = value.to_string();
    if text.len() > BODY_BYTES_MAX {
        let mut end = BODY_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('\u{2026}');
    }
    text
}

fn redact(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                if SECRET_FIELDS.contains(&name.as_str()) && !field.is_object() {
                    *field = "<redacted>".into();
                } else {
                    redact(field);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

/// Whether an entry belongs to a tenant: its own, or one of its projects'.
pub(crate) fn belongs_to(
    entry: &AuditEntry,
    tables: &control_state::Tables,
    tenant: &proto_types::TenantId,
) -> bool {
    let project = entry
        .project
        .as_ref()
        .and_then(|id| id.parse::<ProjectId>().ok());
    entry.tenant == tenant.as_str()
        || project
            .and_then(|id| tables.get::<control_state::Project>(&id))
            .is_some_and(|project| project.tenant == *tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out() {
        let text = redacted(br#"{"name":"m","userdata":"cGFzcw==","a":[{"password":"x"}]}"#);
        assert!(
            !text.contains("cGFzcw") && !text.contains("\"x\""),
            "{text}"
        );
        assert!(text.contains("\"name\":\"m\""));
    }

    #[test]
    fn bodies_are_bounded() {
        let long = format!(r#"{{"name":"{}"}}"#, "\u{e4}".repeat(BODY_BYTES_MAX));
        assert!(redacted(long.as_bytes()).len() <= BODY_BYTES_MAX + 4);
    }
}
