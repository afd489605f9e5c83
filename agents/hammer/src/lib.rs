//! hammer: what a bare machine runs when it boots from the network.
//!
//! It is `/init` of the initramfs ([`init`]): brings the network up, trades a boot ticket for an
//! identity, tells control what the machine is made of, and then does what control orders
//! ([`life`]): wipe, wait, install, reboot. The same static binary stays in the installed system
//! and phones home ([`phone_home`]).
//!
//! Invariants:
//! - What to do to disks and files is planned by pure functions ([`wipe`], [`install`]) and then
//!   executed; tests read the plans.
//! - A disk that was not wiped is reported as such; a failed installation leaves nothing bootable.
//! - The machine's key is made here, lives in memory, and is lost with the power.
//! - No secret in arguments, URLs or logs.

pub mod calls;
pub mod cmd;
pub mod cmdline;
pub mod events;
pub mod init;
pub mod install;
pub mod inventory;
pub mod life;
pub mod lldp;
pub mod log;
pub mod net;
pub mod orders;
pub mod phone_home;
pub mod ticket;
pub mod wipe;
