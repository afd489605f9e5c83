//! Waits for conditions.

use std::time::Duration;

use tokio::time::{Instant, sleep};

pub(crate) use super::PATIENCE;

/// Interval of looks at a condition that tells nobody when it changes.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until a look finds something. `None` if it does not in time.
pub(crate) async fn found<T>(mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return Some(found);
        }
        if Instant::now() > until {
            return None;
        }
        sleep(LOOK).await;
    }
}
