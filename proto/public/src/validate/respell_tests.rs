use std::collections::BTreeSet;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use super::*;
use crate::methods;
use crate::spelling::Spelling;

/// Text fields without a rule whose names sound like ids, and which are something else.
const NOT_IDS: [&str; 23] = [
    // Rules of firewalls: their own check takes canonical prefixes alone, and names are compared
    // with those of the firewall's networks as they are.
    "metalmesh.admin.v1.FirewallRateLimit.network_id",
    "metalmesh.admin.v1.FirewallEgressRule.network_id",
    "metalmesh.admin.v1.FirewallEgressRule.ips",
    "metalmesh.admin.v1.FirewallAddresses.cidr",
    "metalmesh.admin.v1.FirewallServiceRule.namespace",
    "metalmesh.admin.v1.FirewallServiceRule.load_balancer_ips",
    // Names of pools.
    "metalmesh.admin.v1.HostPool.id",
    // Names of switches.
    "metalmesh.admin.v1.FabricServiceGetRequest.id",
    "metalmesh.admin.v1.FabricServiceListDifferencesRequest.id",
    "metalmesh.admin.v1.FabricServiceDrainRequest.id",
    // SPIFFE ids, which are read in one form alone; names of agents.
    "metalmesh.admin.v1.IdentityServiceGetRequest.id",
    "metalmesh.admin.v1.IdentityServiceRevokeRequest.id",
    "metalmesh.admin.v1.IdentityServiceRotateRequest.id",
    "metalmesh.admin.v1.JoinServiceCreateRequest.id",
    // Beginnings of keys.
    "metalmesh.admin.v1.HostKeyRules.prefixes",
    // With a port, or names of hosts.
    "metalmesh.admin.v1.ClusterServiceInviteRequest.peer_address",
    "metalmesh.admin.v1.BmcClaimServiceConfirmRequest.address",
    "metalstack.api.v2.MachineBMC.address",
    "metalstack.api.v2.MachineVPN.control_plane_address",
    "metalstack.api.v2.Partition.mgmt_service_addresses",
    "metalstack.admin.v2.PartitionServiceUpdateRequest.mgmt_service_addresses",
    // Written by the server alone.
    "metalstack.api.v2.Meta.deletion_task_id",
    "metalstack.api.v2.MachineVPN.ips",
];
/// Parts of names that sound like ids.
const SOUNDS: [&str; 10] = [
    "uuid",
    "project",
    "machine",
    "mac",
    "ip",
    "ips",
    "id",
    "namespace",
    "cidr",
    "prefix",
];

/// Every text field of requests that a caller can set, once.
fn texts(message: &MessageDescriptor, seen: &mut BTreeSet<String>, out: &mut Vec<FieldDescriptor>) {
    let is_ours = ["metalstack.", "metalmesh."]
        .iter()
        .any(|package| message.full_name().starts_with(package));
    if !is_ours || !seen.insert(message.full_name().to_owned()) {
        return;
    }
    for field in message.fields() {
        let kind = match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                out.push(field.clone());
                entry.map_entry_value_field().kind()
            }
            kind => kind,
        };
        match kind {
            Kind::String => out.push(field.clone()),
            Kind::Message(message) => texts(&message, seen, out),
            _ => {}
        }
    }
}

fn spelling_of(field: &FieldDescriptor) -> Option<Spelling> {
    let index = PLANS.index(field.parent_message().full_name())?;
    let plans = &PLANS.get(index).fields;
    plans.iter().find(|plan| plan.field == *field)?.spelling
}

fn has_rules(field: &FieldDescriptor) -> bool {
    let Some(index) = PLANS.index(field.parent_message().full_name()) else {
        return false;
    };
    let plan = PLANS
        .get(index)
        .fields
        .iter()
        .find(|plan| plan.field == *field);
    plan.is_some_and(|plan| !plan.rules.is_empty() || !plan.items.is_empty())
}

#[test]
fn every_id_of_a_request_is_known_as_one() {
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    for method in methods() {
        texts(&method.input, &mut seen, &mut all);
    }
    let sounds = |field: &&FieldDescriptor| {
        let mut parts = field.name().split('_');
        parts.any(|part| SOUNDS.contains(&part.trim_end_matches("es")))
            || field.name().contains("address")
    };
    let missed: Vec<&str> = all
        .iter()
        .filter(|field| spelling_of(field).is_none() && !has_rules(field))
        .filter(sounds)
        .map(FieldDescriptor::full_name)
        .filter(|name| !NOT_IDS.contains(name))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let known = all
        .iter()
        .filter(|field| spelling_of(field).is_some())
        .count();
    assert!(known > 120, "{known}");
}

/// The spellings of one thing; the first is the one that is kept.
fn spellings(kind: Spelling) -> Vec<String> {
    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let texts: &[&str] = match kind {
        Spelling::Uuid | Spelling::Any => &[
            ID,
            "0F8FAD5B-D9CB-469F-A165-70867728950E",
            "0f8FAD5b-d9cb-469F-a165-70867728950e",
            "{0f8fad5b-d9cb-469f-a165-70867728950e}",
            "urn:uuid:0f8fad5b-d9cb-469f-a165-70867728950e",
        ],
        Spelling::Mac => &[
            "52:54:00:ab:cd:01",
            "52:54:00:AB:CD:01",
            "52:54:00:aB:cd:01",
        ],
        Spelling::Ip => &[
            "fd00::1",
            "FD00::1",
            "fd00:0:0:0:0:0:0:1",
            "fd00:0000::0001",
        ],
        Spelling::Prefix => &["fd00::/64", "FD00::/64", "fd00:0:0::/64"],
        Spelling::Network => &["fd00::/64", "FD00::/64", "fd00::7/64"],
    };
    let mut all: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    if kind == Spelling::Uuid {
        all.push(ID.replace('-', ""));
    }
    all
}

/// A message in which every id is set, in the spelling of this number.
fn filled(message: &MessageDescriptor, number: usize, depth: usize) -> DynamicMessage {
    let mut out = DynamicMessage::new(message.clone());
    for field in message.fields() {
        let written = spelling_of(&field).map(|kind| {
            let all = spellings(kind);
            all[number % all.len()].clone()
        });
        let kind = match field.kind() {
            Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
            kind => kind,
        };
        let single = match (&kind, &written) {
            (Kind::Message(nested), _)
                if depth > 0 && PLANS.index(nested.full_name()).is_some() =>
            {
                Value::Message(filled(nested, number, depth - 1))
            }
            (Kind::String, Some(text)) if !field.is_map() => Value::String(text.clone()),
            (Kind::Enum(_), Some(_)) => Value::EnumNumber(1),
            _ => continue,
        };
        let value = if field.is_map() {
            let key = written.unwrap_or_else(|| "key".to_owned());
            Value::Map([(MapKey::String(key), single)].into())
        } else if field.is_list() {
            Value::List(vec![single])
        } else {
            single
        };
        out.set_field(&field, value);
    }
    out
}

#[test]
fn every_spelling_of_every_id_of_every_method_becomes_one() {
    let (mut ids, mut changed) = (0, 0);
    for method in methods() {
        let one = filled(&method.input, 0, 4);
        for number in 1..6 {
            let mut other = filled(&method.input, number, 4);
            ids += usize::from(other != one);
            let is_changed = one_spelling(&mut other).unwrap();
            changed += usize::from(is_changed);
            assert_eq!(other, one, "{} in spelling {number}", method.path);
        }
        let mut again = one.clone();
        assert!(!one_spelling(&mut again).unwrap(), "{}", method.path);
        assert_eq!(again, one);
    }
    assert!(ids > 300 && ids == changed, "{ids} {changed}");
}

#[test]
fn two_spellings_of_one_id_are_not_two_entries() {
    let message = crate::message("metalstack.api.v2.TokenServiceCreateRequest").unwrap();
    let field = message.get_field_by_name("project_roles").unwrap();
    let all = spellings(Spelling::Uuid);
    let keys = |texts: &[String]| {
        let entry = |text: &String| (MapKey::String(text.clone()), Value::EnumNumber(1));
        let mut request = DynamicMessage::new(message.clone());
        request.set_field(&field, Value::Map(texts.iter().map(entry).collect()));
        one_spelling(&mut request)
    };
    assert!(keys(&all[1..2]).unwrap());
    for two in [&all[0..2], &all[1..3]] {
        let refused = keys(two).unwrap_err().to_string();
        assert!(refused.contains("twice"), "{refused}");
    }
}
