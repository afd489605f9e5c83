//! The kernel's tables of neighbours, which all namespaces of a host share.

use std::fs;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard};

use super::daemons::DEADLINE;

/// One test at a time fills the tables.
static TABLE: Mutex<()> = Mutex::const_new(());
/// Most entries that are left when a test begins. The smallest table has room for 1,024.
const LEFT: u64 = 100;

/// Waits for the other tests, and until the kernel has removed the entries of their namespaces. Take
/// it before a namespace is made: it has to outlive it.
pub(crate) async fn alone_in_the_table() -> MutexGuard<'static, ()> {
    let guard = TABLE.lock().await;
    let until = Instant::now() + DEADLINE;
    while ["arp_cache", "ndisc_cache"].map(entries).into_iter().max() > Some(LEFT) {
        assert!(Instant::now() < until, "neighbours of others do not go");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    guard
}

/// Number of entries of a table in all namespaces; 0 where the kernel does not tell.
fn entries(table: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/net/stat/{table}")).unwrap_or_default();
    let first = text.lines().nth(1).and_then(|line| line.split(' ').next());
    first.map_or(0, |word| u64::from_str_radix(word, 16).unwrap_or(0))
}
