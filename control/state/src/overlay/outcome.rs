//! The changes from one desired state of a switch to another, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use proto_types::SwitchId;

use crate::desired::{PortFilter, PortIntent, SegmentIntent, SwitchDesired};
use crate::overlay::{desired_place, up_or_down};

/// One field that a change would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    /// The switch.
    pub switch: SwitchId,
    /// The object: `port swp1`, `VRF 27`, `segment 4000`, `switch`.
    pub object: String,
    /// The field.
    pub field: &'static str,
    /// The value before. Empty means none.
    pub before: String,
    /// The value after. Empty means none.
    pub after: String,
}

/// The fields of an object, in words.
type ObjectFields = BTreeMap<&'static str, String>;

/// The fields in which two desired states of a switch differ.
pub(super) fn changes(
    switch: &SwitchId,
    before: Option<&SwitchDesired>,
    after: Option<&SwitchDesired>,
) -> Vec<PlannedChange> {
    let empty = SwitchDesired::default();
    let before = objects(before.unwrap_or(&empty));
    let after = objects(after.unwrap_or(&empty));
    let keys: BTreeSet<&(u8, String)> = before.keys().chain(after.keys()).collect();
    let mut out = Vec::new();
    for key in keys {
        let (old, new) = (before.get(key), after.get(key));
        let fields = old.into_iter().chain(new).flat_map(BTreeMap::keys);
        let fields: BTreeSet<&&'static str> = fields.collect();
        for field in fields {
            let value = |of: Option<&ObjectFields>| of.and_then(|of| of.get(*field)).cloned();
            let (before, after) = (value(old), value(new));
            if before != after {
                out.push(PlannedChange {
                    switch: switch.clone(),
                    object: key.1.clone(),
                    field,
                    before: before.unwrap_or_default(),
                    after: after.unwrap_or_default(),
                });
            }
        }
    }
    out
}

/// The objects of a switch by name; the number sorts the kinds.
fn objects(desired: &SwitchDesired) -> BTreeMap<(u8, String), ObjectFields> {
    let mut out = BTreeMap::new();
    let service = if desired.is_drained {
        "drained"
    } else {
        "in service"
    };
    out.insert(
        (0, "switch".to_owned()),
        [("traffic", service.to_owned())].into(),
    );
    for vrf in &desired.vrfs {
        let fields = [
            ("device", vrf.name()),
            ("table", vrf.table().to_string()),
            ("L3 VNI", vrf.vni.to_string()),
        ];
        out.insert((1, format!("VRF {}", vrf.vni)), fields.into());
    }
    for segment in &desired.segments {
        out.insert((2, format!("segment {}", segment.vni)), of_segment(segment));
    }
    for port in &desired.ports {
        out.insert((3, format!("port {}", port.name)), of_port(port));
    }
    out
}

fn of_segment(segment: &SegmentIntent) -> ObjectFields {
    let mut fields = ObjectFields::from([("MTU", segment.mtu.to_string())]);
    if !segment.remote_vteps.is_empty() {
        fields.insert("floods to", joined(&segment.remote_vteps));
    }
    fields
}

fn of_port(port: &PortIntent) -> ObjectFields {
    let mut fields = ObjectFields::from([
        ("admin", up_or_down(port.admin_up).to_owned()),
        ("place", desired_place(port.place, port.vni)),
    ]);
    if let Some(filter) = &port.filter {
        add_filter(&mut fields, filter);
    }
    fields
}

fn add_filter(fields: &mut ObjectFields, filter: &PortFilter) {
    fields.insert("BGP neighbour", format!("AS {}", filter.asn));
    fields.insert("announces", joined(filter.prefixes.iter()));
    if !filter.vnis.is_empty() {
        fields.insert("EVPN of VNIs", joined(&filter.vnis));
        let networks = filter.networks.iter().map(|(vni, of)| {
            let prefixes = joined(of.routes.iter().chain(&of.prefixes));
            format!("VNI {vni}: {prefixes}")
        });
        let networks = networks.collect::<Vec<_>>().join("; ");
        fields.insert("announces by EVPN", networks);
    }
}

fn joined<T: Display>(parts: impl IntoIterator<Item = T>) -> String {
    let parts = parts.into_iter().map(|part| part.to_string());
    parts.collect::<Vec<_>>().join(", ")
}
