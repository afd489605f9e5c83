use super::StepError;
use crate::model::{
    Bgp, BgpNeighbour, PolicyName, PrefixList, PrefixListId, PrefixRule, RouteMap, RouteMatch,
    SwitchModel,
};
use crate::problem::SwitchObject;
use crate::step::Step;

pub(super) fn interpret(model: &mut SwitchModel, step: &Step) -> Result<(), StepError> {
    match step {
        Step::EnsurePrefixList { list } => {
            let lists = &mut model.policies.prefix_lists;
            lists.entry(list.clone()).or_default();
            Ok(())
        }
        Step::AddPrefix { list, rule } => add_prefix(model, list, *rule),
        Step::RemovePrefix { list, rule } => {
            prefix_list(model, list)?.rules.remove(rule);
            Ok(())
        }
        Step::RemovePrefixList { list } => {
            unnamed(model, &RouteMatch::Prefix(list.clone()), || {
                SwitchObject::PrefixList(list.clone())
            })?;
            model.policies.prefix_lists.remove(list);
            Ok(())
        }
        Step::SetAsPathList { name, list } => {
            let lists = &mut model.policies.as_path_lists;
            lists.insert(name.clone(), list.clone());
            Ok(())
        }
        Step::RemoveAsPathList { name } => {
            unnamed(model, &RouteMatch::AsPath(name.clone()), || {
                SwitchObject::AsPathList(name.clone())
            })?;
            model.policies.as_path_lists.remove(name);
            Ok(())
        }
        Step::SetRouteMap { name, map } => set_route_map(model, name, map),
        Step::RemoveRouteMap { name } => remove_route_map(model, name),
        _ => Ok(()),
    }
}

fn prefix_list<'a>(
    model: &'a mut SwitchModel,
    id: &PrefixListId,
) -> Result<&'a mut PrefixList, StepError> {
    let missing = || StepError::Missing(SwitchObject::PrefixList(id.clone()));
    model.policies.prefix_lists.get_mut(id).ok_or_else(missing)
}

fn add_prefix(
    model: &mut SwitchModel,
    id: &PrefixListId,
    rule: PrefixRule,
) -> Result<(), StepError> {
    let list = prefix_list(model, id)?;
    if rule.is_v6() != id.is_v6 {
        return Err(StepError::Missing(SwitchObject::PrefixList(id.clone())));
    }
    list.rules.insert(rule);
    Ok(())
}

/// Checks that no route map names a list.
fn unnamed(
    model: &SwitchModel,
    list: &RouteMatch,
    object: impl FnOnce() -> SwitchObject,
) -> Result<(), StepError> {
    let mut maps = model.policies.route_maps.values();
    if maps.any(|map| map.matches().any(|found| found == list)) {
        return Err(StepError::InUse(object()));
    }
    Ok(())
}

fn set_route_map(
    model: &mut SwitchModel,
    name: &PolicyName,
    map: &RouteMap,
) -> Result<(), StepError> {
    if !model.policies.has_lists_of(map) {
        return Err(StepError::Missing(SwitchObject::RouteMap(name.clone())));
    }
    let maps = &mut model.policies.route_maps;
    maps.insert(name.clone(), map.clone());
    Ok(())
}

fn remove_route_map(model: &mut SwitchModel, name: &PolicyName) -> Result<(), StepError> {
    let names_it = |neighbour: &BgpNeighbour| {
        [&neighbour.import, &neighbour.export]
            .into_iter()
            .flatten()
            .any(|found| found == name)
    };
    let mut instances = model.bgp.iter().flat_map(Bgp::instances);
    if instances.any(|(_, of)| of.values().any(names_it)) {
        return Err(StepError::InUse(SwitchObject::RouteMap(name.clone())));
    }
    model.policies.route_maps.remove(name);
    Ok(())
}
