//! An nftables table as typed values.

mod chain;
mod expression;
mod operand;
mod set;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub use chain::{BaseChain, Chain, NftRule};
pub use expression::Expression;
pub use operand::{MetaKey, PayloadBase, Register};
pub use set::{Element, NftSet, SetSpec};
pub use verdict::Verdict;

/// Name of our table, of the family `inet`. Nothing outside of it is ever changed.
pub const TABLE: &str = "metalmesh-firewall";

/// Group of the kernel's packet log that [`Expression::Report`] sends to.
pub const REPORT_GROUP: u16 = 4216;
/// Bytes of a reported packet: the longest headers that are read.
pub const REPORT_LEN: u32 = 128;

/// The whole table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NftTable {
    /// Names of counters.
    pub counters: BTreeSet<String>,
    /// Sets and maps by name.
    pub sets: BTreeMap<String, NftSet>,
    /// Chains by name.
    pub chains: BTreeMap<String, Chain>,
}
