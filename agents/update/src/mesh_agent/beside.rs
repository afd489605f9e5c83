use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use super::runner::AgentUpdate;
use crate::EXIT_FOR_UPDATE;

/// Does the work of an agent beside its self-update. The one that ends first stops the other one. Returns
/// what the work returns, and the exit code: that of an agent that ends so that another program takes its
/// place, or zero. `ailment` has the reason why the agent does not do its work.
pub async fn beside_update<T>(
    update: Option<AgentUpdate>,
    ailment: impl Fn() -> Option<String>,
    stop: CancellationToken,
    work: impl Future<Output = T>,
) -> (T, ExitCode) {
    let work = async {
        let done = work.await;
        stop.cancel();
        done
    };
    let replace = async {
        let Some(update) = update else {
            return ExitCode::SUCCESS;
        };
        if !update.run(ailment, stop.clone()).await {
            return ExitCode::SUCCESS;
        }
        stop.cancel();
        ExitCode::from(EXIT_FOR_UPDATE)
    };
    tokio::join!(work, replace)
}
