//! Control's part in self-update: it names a release, and remembers what the agent says.

use std::sync::{Arc, Mutex};

use proto_mesh::{
    AgentRelease, LinkStatus, Peer, Sink, UpdateDesired, UpdateDesiredRequest, UpdateReport,
    UpdateReportResponse, UpdateService,
};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Updates {
    release: watch::Sender<UpdateDesired>,
    /// The last word of the agent about its program.
    program: Arc<Mutex<Option<UpdateReport>>>,
}

impl Updates {
    pub(crate) fn new() -> Self {
        Self {
            release: watch::Sender::new(UpdateDesired::default()),
            program: Arc::default(),
        }
    }

    /// Names a release of the agent.
    pub(crate) fn name_release(&self, release: AgentRelease) {
        self.release.send_modify(|desired| {
            desired.generation += 1;
            desired.release = Some(release);
        });
    }

    /// The last word of the agent about its program.
    pub(crate) fn report(&self) -> Option<UpdateReport> {
        self.program.lock().unwrap().clone()
    }
}

impl UpdateService for Updates {
    async fn desired(
        &self,
        _: &Peer,
        _: UpdateDesiredRequest,
        mut out: Sink<'_, UpdateDesired>,
    ) -> Result<(), LinkStatus> {
        let mut release = self.release.subscribe();
        loop {
            let message = release.borrow_and_update().clone();
            out.send(&message).await?;
            release
                .changed()
                .await
                .map_err(|_| LinkStatus::unavailable("over"))?;
        }
    }

    async fn report(
        &self,
        _: &Peer,
        report: UpdateReport,
    ) -> Result<UpdateReportResponse, LinkStatus> {
        *self.program.lock().unwrap() = Some(report);
        Ok(UpdateReportResponse {})
    }
}
