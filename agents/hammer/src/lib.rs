//! hammer: the installer that a bare machine boots from the network.
//!
//! hammer is `/init` of the initramfs ([`init`]). It brings the network up, trades a boot ticket
//! for an identity, registers the machine's inventory with control, and carries out control's
//! orders ([`life`]): wipe, wait, install, reboot. The same static binary stays in the installed
//! system and phones home ([`phone_home`]).
//!
//! Invariants:
//! - Pure functions plan the changes to disks and files ([`wipe`], [`install`]); a runner executes
//!   the plan. Tests compare the plans.
//! - Every disk gets a wipe record. It names a method only if overwriting reached every block or
//!   the samples read back after the method were erased; else it has the error ([`wipe::run`]). A wipe
//!   that leaves data has a name of its own, and is run only if the order says so
//!   ([`wipe::run_metadata`]).
//! - A layout is checked as a whole before the first byte is written ([`install::layout::plan`]).
//! - A failed installation unmounts the target and removes signatures and partition tables of all
//!   disks of the layout ([`install::run`]); what it cannot remove it logs.
//! - An order that was carried out in this boot is reported again, never carried out again
//!   ([`orders::Ledger`]).
//! - The machine's key is generated here, stays in memory and is lost with the power. The key of
//!   the installed system is generated after the last program of the image has run.
//! - No secret is passed in arguments or URLs, and none is logged. The one exception is the ATA
//!   password of a secure erase, a constant that the erase removes again.

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
