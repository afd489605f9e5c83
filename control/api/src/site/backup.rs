//! Backups of the whole state, for administrators.

use control_backup::{BackupPieces, Made, MakeError};
use control_gate::refusal::{invalid, of_store, refused};
use control_state::ErrorCode;
use futures::stream::{self, BoxStream};
use proto_backup::Recipients;
use proto_public::metalmesh::admin::v1::backup_service_server::BackupService;
use proto_public::metalmesh::admin::v1::{
    BackupServiceCreateRequest, BackupServiceCreateResponse, BackupSummary,
};
use tonic::{Request, Response, Status};

use crate::services::Services;

/// The response stream of a backup: pieces, then the summary.
type BackupStream = BoxStream<'static, Result<BackupServiceCreateResponse, Status>>;

#[tonic::async_trait]
impl BackupService for Services {
    async fn create(
        &self,
        request: Request<BackupServiceCreateRequest>,
    ) -> Result<Response<BackupStream>, Status> {
        let request = request.into_inner();
        let texts = request.recipients.iter().map(String::as_str);
        let recipients = Recipients::parse(texts).map_err(|error| invalid("recipients", error))?;
        match (recipients.is_empty(), request.plain) {
            (true, false) => {
                let rule =
                    "is empty: name whom the backup is encrypted for, or ask for a plain one";
                return Err(invalid("recipients", rule));
            }
            (false, true) => return Err(invalid("plain", "does not go with recipients")),
            _ => {}
        }
        let pieces = self.node.backups.begin(recipients).await.map_err(of_make)?;
        let stream = stream::unfold(Some(pieces), |pieces| async {
            let mut pieces = pieces?;
            if let Some(piece) = pieces.bytes.recv().await {
                let answer = BackupServiceCreateResponse {
                    piece: piece.into(),
                    summary: None,
                };
                return Some((Ok(answer), Some(pieces)));
            }
            Some((last(pieces).await, None))
        });
        Ok(Response::new(Box::pin(stream)))
    }
}

/// The last message. Its summary proves to the reader that the backup is whole.
async fn last(pieces: BackupPieces) -> Result<BackupServiceCreateResponse, Status> {
    let outcome = pieces.outcome.await;
    let Made { revision, summary } = outcome
        .unwrap_or(Err(MakeError::Interrupted))
        .map_err(of_make)?;
    Ok(BackupServiceCreateResponse {
        piece: Vec::new(),
        summary: Some(BackupSummary {
            revision,
            objects: summary.rows,
            bytes: summary.bytes,
        }),
    })
}

fn of_make(error: MakeError) -> Status {
    match error {
        MakeError::Store(error) => of_store(error),
        MakeError::Busy => refused(ErrorCode::TooMany, MakeError::Busy.to_string()),
        other => {
            tracing::error!(error = %other, "a backup could not be made");
            refused(ErrorCode::Internal, "the backup could not be made")
        }
    }
}
