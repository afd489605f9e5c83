//! Entries of extended-community lists.

use super::action::Action;
use super::name::ObjectName;
use super::text::CommunityRegex;

/// Place of an entry: the list and the entry's number in it. The first entry that matches decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommunityKey {
    /// Name of the list.
    pub list: ObjectName,
    /// Number of the entry, from 1.
    pub sequence: u32,
}

/// An entry of an extended-community list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunityRule {
    /// Verdict on a route whose communities match.
    pub action: Action,
    /// Matches the text of all extended communities of a route together, one space between two, as
    /// `show bgp l2vpn evpn` has it.
    pub regex: CommunityRegex,
}
