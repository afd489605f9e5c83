//! Waits for conditions.

use std::time::Duration;

use tokio::time::{Instant, sleep};

pub(crate) use super::PATIENCE;

/// First and longest interval of looks at a condition that tells nobody when it changes. Many looks
/// at control's API are half of an emulated machine's work.
const LOOK: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(300)];

/// Waits until a look finds something. `None` if it does not in time.
pub(crate) async fn found<T>(mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + PATIENCE;
    let [mut pause, most] = LOOK;
    loop {
        if let Some(found) = look().await {
            return Some(found);
        }
        if Instant::now() > until {
            return None;
        }
        sleep(pause).await;
        pause = pause.mul_f64(1.5).min(most);
    }
}
