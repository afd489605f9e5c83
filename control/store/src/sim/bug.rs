//! Bugs that the simulation puts back on purpose, to prove that it finds them.

use std::cell::Cell;
use std::str::FromStr;

/// A bug that a store can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The log acknowledges entries before it has synced them.
    AckBeforeFsync,
    /// A node that installed a snapshot keeps its old membership.
    StaleMembershipAfterSnapshot,
    /// A linearizable read answers from the local state, without a read index.
    SkippedReadIndex,
    /// A linearizable read joins a round that had begun before it.
    JoinedRunningRound,
    /// A watch that resumes skips one change.
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

    /// Name on the command line.
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

/// `true` if the stores of this thread have `bug`.
pub(crate) fn has(bug: Bug) -> bool {
    BUG.get() == Some(bug)
}
