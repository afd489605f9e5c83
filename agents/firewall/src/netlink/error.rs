use std::io;

use nix::errno::Errno;

/// A reason why the kernel's table cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// No socket to nftables.
    #[error("cannot open a netlink socket to nftables; the agent needs CAP_NET_ADMIN")]
    Open(#[source] io::Error),
    /// A request failed.
    #[error("cannot {action}{}", hint(.source))]
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

/// The likely reason of an error whose name says nothing: what a rule refers to is sent with it, so
/// that only a part of the kernel can be missing.
fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(code) if code == Errno::ENOENT as i32 => {
            " (the kernel may lack a module, such as nft_ct, nft_limit, nft_log, nft_nat, nft_objref \
             or nf_log_syslog)"
        }
        _ => "",
    }
}
