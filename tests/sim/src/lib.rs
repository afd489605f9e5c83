//! A whole cluster of stores in one thread: real stores, real Raft, simulated network, disks and
//! clocks. Everything that happens follows from one seed, so a failure is replayed by its number.
//!
//! A run has three parts. Nodes form a cluster; then clients read, write and watch while a
//! [`nemesis`] cuts links, crashes nodes, spoils disks and changes the membership; then
//! everything is mended, and the cluster has to become one again. What must hold at every step is
//! in [`invariants`], one a file; what clients may see is in [`oracle`].
//!
//! The clusters keep a [`workload`]: numbers under keys, which prove the store, or the
//! whole state of a site, with a hundred tenants and the agents of its machines ([`tenants`]).
//!
//! Entry points: [`run`](run::run) and [`tenants::run`]. Same seed, same run: nothing here or in
//! the store may draw system randomness, read the machine's clock, start a thread, or iterate in
//! random order.

pub mod cli;
mod clients;
mod clock;
mod cluster;
mod drive;
mod invariants;
mod machine;
mod nemesis;
mod net;
mod node;
mod operator;
mod oracle;
mod plan;
mod random;
mod registers;
pub mod run;
pub mod tenants;
mod trace;
mod watcher;
mod workload;
