//! Kinds of communities, and entries of extended-community lists.

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

/// A kind of communities that a route may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommunityKind {
    /// Communities (RFC 1997), such as `no-export` and `graceful-shutdown`.
    Ordinary,
    /// Extended communities (RFC 4360), such as route targets.
    Extended,
    /// Large communities (RFC 8092).
    Large,
}

impl CommunityKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Ordinary, Self::Extended, Self::Large];

    /// The line of a route-map that takes them off a route.
    pub(in crate::frr) fn clearing(self) -> &'static str {
        match self {
            Self::Ordinary => "set community none",
            Self::Extended => "set extcommunity none",
            Self::Large => "set large-community none",
        }
    }
}
