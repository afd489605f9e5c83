use std::io;

/// A reason why the kernel's table cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// No socket to nftables.
    #[error("cannot open a netlink socket to nftables; the agent needs CAP_NET_ADMIN")]
    Open(#[source] io::Error),
    /// A request failed.
    #[error("cannot {action}")]
    Request {
        /// The request.
        action: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// Somebody else changed the kernel's rules after they were read.
    #[error("the kernel's rules changed while a change was prepared")]
    Stale,
    /// An answer that is not understood.
    #[error("the kernel's answer is not understood: {0}")]
    Malformed(&'static str),
    /// After a change the kernel's table is not what it should be.
    #[error("the kernel took the change, and its table still differs: {0}")]
    NotApplied(String),
}
