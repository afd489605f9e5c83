use std::collections::BTreeSet;

use super::Fitter;
use crate::capability::Capability;
use crate::frr;
use crate::model::{Bgp, PolicyName, PrefixList, PrefixListId, RouteMap, RouteMatch};
use crate::problem::{Refusal, SwitchObject};

impl Fitter<'_> {
    /// Policies of others stay; ours need BGP, and route maps need their lists.
    pub(super) fn policies(&mut self) {
        self.copy_policies_of_others();
        let desired = &self.desired.policies;
        for (id, list) in &desired.prefix_lists {
            let refusal = self.policy_refusal(&id.name);
            match refusal.or_else(|| wrong_family(id, list)) {
                Some(refusal) => self.refuse(SwitchObject::PrefixList(id.clone()), refusal),
                None => {
                    let lists = &mut self.model.policies.prefix_lists;
                    lists.insert(id.clone(), list.clone());
                }
            }
        }
        for (name, list) in &desired.as_path_lists {
            match self.policy_refusal(name) {
                Some(refusal) => self.refuse(SwitchObject::AsPathList(name.clone()), refusal),
                None => {
                    let lists = &mut self.model.policies.as_path_lists;
                    lists.insert(name.clone(), list.clone());
                }
            }
        }
        for (name, map) in &desired.route_maps {
            let refusal = self.policy_refusal(name);
            let refusal = refusal.or_else(|| self.missing_list(map));
            match refusal.or_else(|| inexpressible_map(name, map)) {
                Some(refusal) => self.refuse(SwitchObject::RouteMap(name.clone()), refusal),
                None => {
                    let maps = &mut self.model.policies.route_maps;
                    maps.insert(name.clone(), map.clone());
                }
            }
        }
    }

    fn copy_policies_of_others(&mut self) {
        let (seen, out) = (&self.observed.policies, &mut self.model.policies);
        let lists = seen.prefix_lists.iter();
        let lists = lists.filter(|(id, _)| !id.name.is_managed());
        out.prefix_lists
            .extend(lists.map(|(id, list)| (id.clone(), list.clone())));
        let lists = seen.as_path_lists.iter();
        let lists = lists.filter(|(name, _)| !name.is_managed());
        out.as_path_lists
            .extend(lists.map(|(name, list)| (name.clone(), list.clone())));
        let maps = seen.route_maps.iter();
        let maps = maps.filter(|(name, _)| !name.is_managed());
        out.route_maps
            .extend(maps.map(|(name, map)| (name.clone(), map.clone())));
    }

    fn policy_refusal(&self, name: &PolicyName) -> Option<Refusal> {
        let not_ours = (!name.is_managed()).then_some(Refusal::NotManaged);
        let refusal = not_ours.or_else(|| self.lacks(Capability::Bgp));
        refusal.or_else(|| frr::check_name(name).err().map(Refusal::Inexpressible))
    }

    /// The reason to refuse a route map of ours: a list that is unknown or of others.
    fn missing_list(&self, map: &RouteMap) -> Option<Refusal> {
        let policies = &self.model.policies;
        map.matches().find_map(|found| {
            let (name, is_known) = match found {
                RouteMatch::Prefix(id) => (&id.name, policies.prefix_lists.contains_key(id)),
                RouteMatch::AsPath(name) => (name, policies.as_path_lists.contains_key(name)),
                _ => return None,
            };
            let is_ours = is_known && name.is_managed();
            (!is_ours).then(|| Refusal::NoPolicy(name.clone()))
        })
    }

    /// Keeps those of our policies that somebody else uses: neighbours in VRFs of others name route
    /// maps, route maps of others name lists. They would otherwise lose their filters.
    pub(super) fn keep_policies_of_others(&mut self) {
        let seen = &self.observed.policies;
        let instances = self.model.bgp.iter().flat_map(Bgp::instances);
        let others = instances.filter(|(vrf, _)| vrf.is_some_and(|vrf| !vrf.is_managed()));
        let used: BTreeSet<&PolicyName> = others
            .flat_map(|(_, of)| of.values())
            .flat_map(|neighbour| [&neighbour.import, &neighbour.export])
            .flatten()
            .collect();
        let maps = &mut self.model.policies.route_maps;
        for name in used {
            if let Some(map) = seen.route_maps.get(name) {
                maps.entry(name.clone()).or_insert_with(|| map.clone());
            }
        }
        let matches: BTreeSet<RouteMatch> =
            maps.values().flat_map(RouteMap::matches).cloned().collect();
        for found in matches {
            match found {
                RouteMatch::Prefix(id) => {
                    if let Some(list) = seen.prefix_lists.get(&id) {
                        let lists = &mut self.model.policies.prefix_lists;
                        lists.entry(id).or_insert_with(|| list.clone());
                    }
                }
                RouteMatch::AsPath(name) => {
                    if let Some(list) = seen.as_path_lists.get(&name) {
                        let lists = &mut self.model.policies.as_path_lists;
                        lists.entry(name).or_insert_with(|| list.clone());
                    }
                }
                _ => {}
            }
        }
    }
}

fn inexpressible_map(name: &PolicyName, map: &RouteMap) -> Option<Refusal> {
    let checked = frr::check_route_map(name, map);
    checked.err().map(Refusal::Inexpressible)
}

fn wrong_family(id: &PrefixListId, list: &PrefixList) -> Option<Refusal> {
    let fits = list.rules.iter().all(|rule| rule.is_v6() == id.is_v6);
    (!fits).then_some(Refusal::WrongFamily)
}
