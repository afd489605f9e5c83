//! Bugs that the simulation puts back, to prove that it would find them.

use std::cell::Cell;
use std::str::FromStr;

/// A bug that a store can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The log tells that entries are durable before it has synced them.
    AckBeforeFsync,
    /// A node that installed a snapshot keeps the membership that it had.
    StaleMembershipAfterSnapshot,
    /// A linearizable read answers from what the node has, without asking a majority.
    SkippedReadIndex,
    /// A linearizable read joins a round of questions that had begun before it.
    JoinedRunningRound,
    /// A watch that resumes begins one change too late.
    WatchGapOnResume,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::AckBeforeFsync,
        Self::StaleMembershipAfterSnapshot,
        Self::SkippedReadIndex,
        Self::JoinedRunningRound,
        Self::WatchGapOnResume,
    ];

    /// How the command line calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AckBeforeFsync => "ack-before-fsync",
            Self::StaleMembershipAfterSnapshot => "stale-membership-after-snapshot",
            Self::SkippedReadIndex => "skipped-read-index",
            Self::JoinedRunningRound => "joined-running-round",
            Self::WatchGapOnResume => "watch-gap-on-resume",
        }
    }
}

impl FromStr for Bug {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|bug| bug.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no bug is called \"{text}\"; there are {names}")
        })
    }
}

thread_local! {
    static BUG: Cell<Option<Bug>> = const { Cell::new(None) };
}

pub(crate) fn inject(bug: Option<Bug>) {
    BUG.set(bug);
}

/// Do the stores of this thread have `bug`?
pub(crate) fn has(bug: Bug) -> bool {
    BUG.get() == Some(bug)
}
