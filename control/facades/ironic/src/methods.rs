//! The methods of the facade, as the audit trail and the store's table of operations name them.

use control_authz::FacadeMethod;

macro_rules! methods {
    ($($name:ident $path:literal $audited:literal;)*) => {
        $(pub(crate) static $name: FacadeMethod = FacadeMethod {
            path: concat!("/openstack.", $path),
            audited: $audited,
        };)*

        #[cfg(test)]
        static ALL: &[&FacadeMethod] = &[$(&$name,)*];
    };
}

methods! {
    NODES_LIST "baremetal.v1.Nodes/List" false;
    NODES_GET "baremetal.v1.Nodes/Get" false;
    NODES_CREATE "baremetal.v1.Nodes/Create" true;
    NODES_UPDATE "baremetal.v1.Nodes/Update" true;
    NODES_DELETE "baremetal.v1.Nodes/Delete" true;
    NODES_VALIDATE "baremetal.v1.Nodes/Validate" false;
    NODES_SET_MAINTENANCE "baremetal.v1.Nodes/SetMaintenance" true;
    NODES_SET_POWER "baremetal.v1.Nodes/SetPower" true;
    NODES_SET_PROVISION_STATE "baremetal.v1.Nodes/SetProvisionState" true;
    NODES_SET_BOOT_DEVICE "baremetal.v1.Nodes/SetBootDevice" true;
    NODES_SET_INDICATOR "baremetal.v1.Nodes/SetIndicator" true;
    NODES_SET_TRAITS "baremetal.v1.Nodes/SetTraits" true;
    NODES_ATTACH_VIF "baremetal.v1.Nodes/AttachVif" true;
    NODES_DETACH_VIF "baremetal.v1.Nodes/DetachVif" true;
    NODES_UNSUPPORTED "baremetal.v1.Nodes/Unsupported" true;
    PORTS_GET "baremetal.v1.Ports/Get" false;
    PORTS_CREATE "baremetal.v1.Ports/Create" true;
    PORTS_UPDATE "baremetal.v1.Ports/Update" true;
    PORTS_DELETE "baremetal.v1.Ports/Delete" true;
    PORTGROUPS_GET "baremetal.v1.Portgroups/Get" false;
    PORTGROUPS_CREATE "baremetal.v1.Portgroups/Create" true;
    PORTGROUPS_UPDATE "baremetal.v1.Portgroups/Update" true;
    PORTGROUPS_DELETE "baremetal.v1.Portgroups/Delete" true;
    ALLOCATIONS_GET "baremetal.v1.Allocations/Get" false;
    ALLOCATIONS_CREATE "baremetal.v1.Allocations/Create" true;
    ALLOCATIONS_UPDATE "baremetal.v1.Allocations/Update" true;
    ALLOCATIONS_DELETE "baremetal.v1.Allocations/Delete" true;
    CHASSIS_GET "baremetal.v1.Chassis/Get" false;
    CHASSIS_CREATE "baremetal.v1.Chassis/Create" true;
    CHASSIS_UPDATE "baremetal.v1.Chassis/Update" true;
    CHASSIS_DELETE "baremetal.v1.Chassis/Delete" true;
    TEMPLATES_GET "baremetal.v1.DeployTemplates/Get" false;
    TEMPLATES_CREATE "baremetal.v1.DeployTemplates/Create" true;
    TEMPLATES_UPDATE "baremetal.v1.DeployTemplates/Update" true;
    TEMPLATES_DELETE "baremetal.v1.DeployTemplates/Delete" true;
    RUNBOOKS_GET "baremetal.v1.Runbooks/Get" false;
    RUNBOOKS_CREATE "baremetal.v1.Runbooks/Create" true;
    RUNBOOKS_UPDATE "baremetal.v1.Runbooks/Update" true;
    RUNBOOKS_DELETE "baremetal.v1.Runbooks/Delete" true;
    SITE_GET "baremetal.v1.Site/Get" false;
    SITE_UNSUPPORTED "baremetal.v1.Site/Unsupported" true;
    NETWORKS_GET "network.v2.Networks/Get" false;
    NETWORK_PORTS_GET "network.v2.Ports/Get" false;
    NETWORK_PORTS_CREATE "network.v2.Ports/Create" true;
    NETWORK_PORTS_UPDATE "network.v2.Ports/Update" true;
    NETWORK_PORTS_DELETE "network.v2.Ports/Delete" true;
}

#[cfg(test)]
mod tests {
    use control_store::facade_operations;

    use super::*;

    #[test]
    fn a_method_that_changes_something_is_audited() {
        for method in ALL {
            let changes = !facade_operations(method.path).is_empty();
            assert!(method.audited || !changes, "{}", method.path);
        }
        assert!(!facade_operations(NODES_UPDATE.path).is_empty());
    }
}
