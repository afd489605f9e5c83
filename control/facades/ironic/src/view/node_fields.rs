//! The fields of a node, by microversion.

use super::newer_fields::has_field;
use crate::version::ApiVersion;

/// Kinds of interfaces: a node has a field `KIND_interface` of each.
pub(crate) const INTERFACE_KINDS: [&str; 13] = [
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "rescue",
    "storage",
    "vendor",
];

/// Every field of a node that a request may name, in the order of names.
pub(crate) const NODE_FIELDS: [&str; 64] = [
    "allocation_uuid",
    "automated_clean",
    "bios_interface",
    "boot_interface",
    "boot_mode",
    "chassis_uuid",
    "clean_step",
    "conductor",
    "conductor_group",
    "console_enabled",
    "console_interface",
    "created_at",
    "deploy_interface",
    "deploy_step",
    "description",
    "disable_power_off",
    "driver",
    "driver_info",
    "driver_internal_info",
    "extra",
    "fault",
    "firmware_interface",
    "health",
    "inspect_interface",
    "inspection_finished_at",
    "inspection_started_at",
    "instance_info",
    "instance_name",
    "instance_uuid",
    "last_error",
    "lessee",
    "maintenance",
    "maintenance_reason",
    "management_interface",
    "name",
    "network_data",
    "network_interface",
    "owner",
    "parent_node",
    "power_interface",
    "power_state",
    "properties",
    "protected",
    "protected_reason",
    "provision_state",
    "provision_updated_at",
    "raid_config",
    "raid_interface",
    "rescue_interface",
    "reservation",
    "resource_class",
    "retired",
    "retired_reason",
    "secure_boot",
    "service_step",
    "shard",
    "storage_interface",
    "target_power_state",
    "target_provision_state",
    "target_raid_config",
    "traits",
    "updated_at",
    "uuid",
    "vendor_interface",
];

/// The newer ones.
const NEWER: [(&str, u16); 7] = [
    ("disable_power_off", 95),
    ("firmware_interface", 86),
    ("health", 109),
    ("instance_name", 104),
    ("parent_node", 83),
    ("service_step", 87),
    ("shard", 82),
];

/// `true` if nodes have the field in this microversion, or in all of them.
pub(crate) fn has_node_field(version: ApiVersion, name: &str) -> bool {
    has_field(&NEWER, version, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_sorted_and_newer_ones_are_among_them() {
        assert!(NODE_FIELDS.is_sorted());
        for (name, since) in NEWER {
            assert!(NODE_FIELDS.contains(&name), "{name}");
            assert!(!has_node_field(ApiVersion::of(since - 1), name), "{name}");
            assert!(has_node_field(ApiVersion::of(since), name), "{name}");
        }
        assert!(has_node_field(ApiVersion::of(1), "owner"));
        for kind in INTERFACE_KINDS {
            let name = format!("{kind}_interface");
            assert!(NODE_FIELDS.contains(&name.as_str()), "{name}");
        }
    }
}
