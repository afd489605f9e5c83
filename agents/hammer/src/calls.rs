//! Calls that must reach control: they retry without a limit.

use std::time::Duration;

use agents_kit::LinkStatus;
use base_runtime::Backoff;

/// Pauses between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(15));

/// Repeats a call until control answers; without control the machine has nothing else to do.
/// Only idempotent calls may go through here: a lost response means that control executes twice.
///
/// # Errors
/// Control's status, when it is final (not transient).
pub async fn persistent<T, F>(name: &str, mut call: impl FnMut() -> F) -> Result<T, LinkStatus>
where
    F: Future<Output = Result<T, LinkStatus>>,
{
    let mut failures = 0_u32;
    loop {
        match call().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(call = name, %error, "control does not answer; retrying");
                tokio::time::sleep(BACKOFF.pause(failures)).await;
                failures = failures.saturating_add(1);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_may_pass_is_repeated() {
        let mut left = 3;
        let done = persistent("x", || {
            left -= 1;
            let answer = if left > 0 {
                Err(LinkStatus::unavailable("away"))
            } else {
                Ok(left)
            };
            async move { answer }
        });
        assert_eq!(done.await, Ok(0));
        let refused = persistent("x", || async { Err::<(), _>(LinkStatus::not_found("no")) });
        assert_eq!(refused.await, Err(LinkStatus::not_found("no")));
    }
}
