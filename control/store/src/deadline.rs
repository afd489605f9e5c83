//! Time limits of exchanges with other members.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::time::timeout;

/// Runs `work` for at most `limit`.
///
/// # Errors
/// The error of `work`, or [`io::ErrorKind::TimedOut`] at the limit; `work` is dropped then.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} ms", limit.as_millis());
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}
