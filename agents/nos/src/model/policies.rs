use std::collections::BTreeMap;

use super::as_path_list::AsPathList;
use super::names::PolicyName;
use super::prefix_list::{PrefixList, PrefixListId};
use super::route_map::{RouteMap, RouteMatch};

/// The policies of a switch by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Prefix lists of both families.
    pub prefix_lists: BTreeMap<PrefixListId, PrefixList>,
    /// As-path lists.
    pub as_path_lists: BTreeMap<PolicyName, AsPathList>,
    /// Route maps, which alone name the lists.
    pub route_maps: BTreeMap<PolicyName, RouteMap>,
}

impl Policies {
    /// `true` if every list that a route map names is there.
    #[must_use]
    pub fn has_lists_of(&self, map: &RouteMap) -> bool {
        map.matches().all(|found| match found {
            RouteMatch::Prefix(id) => self.prefix_lists.contains_key(id),
            RouteMatch::AsPath(name) => self.as_path_lists.contains_key(name),
            _ => true,
        })
    }
}
