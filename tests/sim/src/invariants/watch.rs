//! Watches: each change once, in order, whole, and as it was applied.

use crate::machine::{Changed, applied};

/// Checks an event of `revision` on a watch that had come to `last`.
pub(crate) fn check(last: u64, revision: u64, changes: &[Changed]) -> Result<(), String> {
    if revision != last + 1 {
        return Err(format!("revision {revision} came after revision {last}"));
    }
    let applied = applied(|applied| {
        let put = applied.at(revision)?;
        Some((*put, applied.digest_at(revision)?))
    });
    let Some((put, digest)) = applied else {
        return Err(format!(
            "revision {revision} was announced before it was applied"
        ));
    };
    match changes {
        [one, sum] if (one.key, one.value) == (put.key, put.value) && sum.value == digest => Ok(()),
        _ => Err(format!(
            "revision {revision} was announced as {changes:?}, but is {put:?}"
        )),
    }
}
