//! The operations of each method of a facade.

/// The operations of each method of a facade that changes something, sorted by method: found by
/// binary search. The names are those of `control/facades`.
pub(crate) const FACADE_METHODS: &[(&str, &[&str])] = &[
    (
        "openstack.baremetal.v1.Allocations/Create",
        &["CreateNodeAllocation"],
    ),
    (
        "openstack.baremetal.v1.Allocations/Delete",
        &["DeleteNodeAllocation"],
    ),
    (
        "openstack.baremetal.v1.Allocations/Update",
        &["UpdateNodeAllocation"],
    ),
    (
        "openstack.baremetal.v1.Chassis/Create",
        &["SetNodeDocument"],
    ),
    (
        "openstack.baremetal.v1.Chassis/Delete",
        &["DeleteNodeDocument"],
    ),
    (
        "openstack.baremetal.v1.Chassis/Update",
        &["SetNodeDocument"],
    ),
    (
        "openstack.baremetal.v1.DeployTemplates/Create",
        &["SetNodeDocument"],
    ),
    (
        "openstack.baremetal.v1.DeployTemplates/Delete",
        &["DeleteNodeDocument"],
    ),
    (
        "openstack.baremetal.v1.DeployTemplates/Update",
        &["SetNodeDocument"],
    ),
    ("openstack.baremetal.v1.Nodes/AttachVif", &["SetNode"]),
    ("openstack.baremetal.v1.Nodes/Create", &["EnrolNode"]),
    ("openstack.baremetal.v1.Nodes/Delete", &["DeleteMachine"]),
    ("openstack.baremetal.v1.Nodes/DetachVif", &["SetNode"]),
    (
        "openstack.baremetal.v1.Nodes/SetBootDevice",
        &["OrderBmc", "SetNode"],
    ),
    ("openstack.baremetal.v1.Nodes/SetIndicator", &["OrderBmc"]),
    ("openstack.baremetal.v1.Nodes/SetMaintenance", &["SetNode"]),
    ("openstack.baremetal.v1.Nodes/SetPower", &["OrderBmc"]),
    (
        "openstack.baremetal.v1.Nodes/SetProvisionState",
        &[
            "AllocateMachine",
            "FreeMachine",
            "OrderBmc",
            "SetNode",
            "WipeNode",
        ],
    ),
    (
        "openstack.baremetal.v1.Nodes/SetTraits",
        &["SetMachineCapability"],
    ),
    ("openstack.baremetal.v1.Nodes/Update", &["UpdateNode"]),
    ("openstack.baremetal.v1.Portgroups/Create", &["SetNode"]),
    ("openstack.baremetal.v1.Portgroups/Delete", &["SetNode"]),
    ("openstack.baremetal.v1.Portgroups/Update", &["SetNode"]),
    ("openstack.baremetal.v1.Ports/Create", &["SetNode"]),
    ("openstack.baremetal.v1.Ports/Delete", &["SetNode"]),
    ("openstack.baremetal.v1.Ports/Update", &["SetNode"]),
    (
        "openstack.baremetal.v1.Runbooks/Create",
        &["SetNodeDocument"],
    ),
    (
        "openstack.baremetal.v1.Runbooks/Delete",
        &["DeleteNodeDocument"],
    ),
    (
        "openstack.baremetal.v1.Runbooks/Update",
        &["SetNodeDocument"],
    ),
    ("openstack.network.v2.Ports/Create", &["SetNodeDocument"]),
    ("openstack.network.v2.Ports/Delete", &["DeleteNodeDocument"]),
    ("openstack.network.v2.Ports/Update", &["SetNodeDocument"]),
];
