"""The paths that random requests go to."""

# Paths of Ironic, Keystone and Neutron.
PATTERNS = (
    "/", "/v1", "/v1/nodes", "/v1/nodes/detail", "/v1/nodes/{n}", "/v1/nodes/{n}/validate",
    "/v1/nodes/{n}/maintenance", "/v1/nodes/{n}/states", "/v1/nodes/{n}/states/power",
    "/v1/nodes/{n}/states/provision", "/v1/nodes/{n}/states/boot_mode",
    "/v1/nodes/{n}/states/secure_boot", "/v1/nodes/{n}/states/console",
    "/v1/nodes/{n}/states/raid", "/v1/nodes/{n}/management/boot_device",
    "/v1/nodes/{n}/management/boot_device/supported", "/v1/nodes/{n}/management/inject_nmi",
    "/v1/nodes/{n}/management/indicators", "/v1/nodes/{n}/management/indicators/{i}",
    "/v1/nodes/{n}/traits", "/v1/nodes/{n}/traits/{t}", "/v1/nodes/{n}/vifs",
    "/v1/nodes/{n}/vifs/{v}", "/v1/nodes/{n}/bios", "/v1/nodes/{n}/bios/{s}",
    "/v1/nodes/{n}/firmware", "/v1/nodes/{n}/history", "/v1/nodes/{n}/history/{h}",
    "/v1/nodes/{n}/inventory", "/v1/nodes/{n}/children", "/v1/nodes/{n}/allocation",
    "/v1/nodes/{n}/ports", "/v1/nodes/{n}/portgroups", "/v1/nodes/{n}/vendor_passthru/methods",
    "/v1/ports", "/v1/ports/detail", "/v1/ports/{p}", "/v1/portgroups", "/v1/portgroups/{p}",
    "/v1/portgroups/{p}/ports", "/v1/allocations", "/v1/allocations/{a}", "/v1/chassis",
    "/v1/chassis/{c}", "/v1/deploy_templates", "/v1/deploy_templates/{t}", "/v1/runbooks",
    "/v1/runbooks/{r}", "/v1/runbooks/{r}/traits", "/v1/runbooks/{r}/traits/{t}", "/v1/drivers",
    "/v1/drivers/{d}", "/v1/drivers/{d}/properties", "/v1/drivers/{d}/vendor_passthru",
    "/v1/conductors", "/v1/conductors/{c}", "/v1/shards", "/v1/inspection_rules",
    "/v1/inspection_rules/{r}", "/v1/volume", "/v1/volume/connectors", "/v1/volume/targets/{v}",
    "/v1/events", "/v3", "/v3/auth/tokens", "/v2.0", "/v2.0/networks", "/v2.0/networks/{n}",
    "/v2.0/subnets", "/v2.0/subnets/{s}", "/v2.0/ports", "/v2.0/ports/{p}", "/v1/{x}/{y}/{z}",
)
