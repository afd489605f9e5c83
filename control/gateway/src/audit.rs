//! Records of the calls that the contract wants audited.

use control_authz::{Permit, SystemActor};
use control_state::{AppendAudit, AuditEntry, AuditPhase, Command};
use control_store::Store;
use proto_link::{Audit, LinkStatus, MethodSpec, Peer};
use proto_types::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::error;
use uuid::Uuid;

use crate::access;

/// Records that may wait for the writer.
const QUEUE_MAX: usize = 1024;
/// Records in one command.
const BATCH_MAX: usize = 128;

/// Where records go.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    queue: mpsc::Sender<AuditEntry>,
}

/// Writes them; runs as its own task.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Receiver<AuditEntry>,
    store: Store,
}

pub(crate) fn trail(store: Store) -> (Trail, Writer) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    (
        Trail { queue: sender },
        Writer {
            queue: receiver,
            store,
        },
    )
}

impl Trail {
    /// Records how a call ended. `what` says whom it was about, without secrets.
    pub(crate) async fn record<T>(
        &self,
        method: &MethodSpec,
        peer: &Peer,
        what: String,
        began: Timestamp,
        result: &Result<T, LinkStatus>,
    ) {
        // Refusing strangers must not cost a write: the log has them.
        let stranger = peer.id().is_none() && result.is_err();
        if method.audit == Audit::Never || stranger {
            return;
        }
        let code = result
            .as_ref()
            .err()
            .map_or(0, |e| i32::from(e.code() as u8));
        let request = AuditEntry {
            sequence: 0,
            id: Uuid::now_v7().to_string(),
            time: began,
            user: access::actor(peer),
            tenant: String::new(),
            project: None,
            method: method.path.to_owned(),
            body: (!what.is_empty()).then_some(what),
            source_ip: peer.remote().ip().to_string(),
            result_code: None,
            phase: AuditPhase::Request,
        };
        let response = AuditEntry {
            body: result.as_ref().err().map(ToString::to_string),
            result_code: Some(code),
            phase: AuditPhase::Response,
            ..request.clone()
        };
        for entry in [request, response] {
            if self.queue.send(entry).await.is_err() {
                error!(
                    method = method.path,
                    "an audit record came after the writer ended"
                );
            }
        }
    }
}

impl Writer {
    /// Runs until `stop`, then writes what still waits.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
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

    async fn write(&self, batch: Vec<AuditEntry>) {
        let permit = Permit::system(SystemActor::Audit);
        for chunk in batch.chunks(BATCH_MAX) {
            let entries = chunk.to_vec();
            let command = Command::new(self.store.now(), "audit", AppendAudit { entries });
            if let Err(e) = self.store.propose(&permit, &command).await {
                // The log is the trail of last resort.
                for entry in chunk {
                    error!(error = %e, entry = ?entry, "an audit record was not stored");
                }
            }
        }
    }
}
