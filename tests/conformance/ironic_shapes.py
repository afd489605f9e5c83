"""The documented requests of Ironic's API that have a body, with the lists that show what each could
change; and the objects that they are about.
"""

from ironic_calls import Ironic
from ironic_world import IMAGE_SHA256, IMAGE_URL

ADDRESS = "52:54:00:00:77:01"
OTHER_ADDRESS = "52:54:00:00:77:02"
STEP = {"interface": "bios", "step": "apply_configuration", "args": {"a": 1}, "priority": 10}
RUNBOOK_STEP = {"interface": "bios", "step": "apply_configuration", "args": {}, "order": 1}
OF_NODES = ("nodes", "ports", "portgroups", "allocations")


class Shape:
    """A documented request."""

    def __init__(self, verb, path, body, *lists):
        self.verb, self.path, self.body = verb, path, body
        self.lists = lists or OF_NODES


class Fixtures:
    """One object of each kind, made anew once a request deleted it."""

    def __init__(self, world, machine):
        self.world, self.machine = world, machine
        self.project = world.projects["alpha"]
        # Not a caller of the requests, and so always of the newest version.
        self.site = Ironic(world.tokens["admin"])
        self.idents = {}
        self.refresh()

    def refresh(self):
        """Makes what is missing; the ids of the others stay."""
        for kind, path, body in self.wanted():
            ident = self.idents.get(kind)
            if ident and self.site.get(f"{path}/{ident}").status == 200:
                continue
            made = self.site.post(path, body)
            if made.status < 300:
                found = made.json.get("port", made.json)
                self.idents[kind] = found.get("uuid") or found["id"]
            else:
                # Another object of the same name or address is in the way; it serves as well.
                self.idents.setdefault(kind, "nonsense")

    def wanted(self):
        node = lambda: self.idents["node"]
        yield "chassis", "/v1/chassis", {"description": "hall"}
        yield "node", "/v1/nodes", {"driver": "metalmesh", "name": "kn1", "owner": self.project.id,
                                    "resource_class": "gold"}
        yield "group", "/v1/portgroups", {"node_uuid": node(), "name": "pg1"}
        yield "port", "/v1/ports", {"node_uuid": node(), "address": ADDRESS}
        yield "template", "/v1/deploy_templates", {"name": "CUSTOM_T", "steps": [STEP]}
        yield "runbook", "/v1/runbooks", {"name": "CUSTOM_R", "steps": [RUNBOOK_STEP]}
        yield "allocation", "/v1/allocations", {"name": "a1", "resource_class": "gold"}
        yield "network port", "/v2.0/ports", {"port": {
            "network_id": self.project.network, "project_id": self.project.id}}

    def shapes(self):
        """Every documented request with a body, about these objects."""
        return [*self.of_nodes(), *self.of_states(), *self.of_parts(), *self.of_documents(),
                *self.of_others()]

    def of_nodes(self):
        ids, project = self.idents, self.project
        full = {
            "driver": "metalmesh", "name": "kn2", "owner": project.id, "resource_class": "silver",
            "driver_info": {"redfish_address": "https://10.0.0.9", "redfish_password": "x"},
            "properties": {"cpus": 4, "memory_mb": 1024, "capabilities": "boot_mode:uefi"},
            "extra": {"rack": {"row": 7}}, "description": "text", "chassis_uuid": ids["chassis"],
            "conductor_group": "g", "shard": "s1", "automated_clean": True, "protected": False,
            "instance_info": {"a": "b"}, "network_interface": "metalmesh", "retired": False,
        }
        yield Shape("POST", "/v1/nodes", full)
        yield Shape("POST", "/v1/nodes", {**full, "name": None, "parent_node": ids["node"]})
        changes = [
            {"op": "add", "path": "/extra/a", "value": {"b": [1, 2]}},
            {"op": "replace", "path": "/name", "value": "kn1"},
            {"op": "replace", "path": "/resource_class", "value": "gold"},
            {"op": "add", "path": "/properties/cpus", "value": 8},
            {"op": "add", "path": "/instance_info/image_source", "value": IMAGE_URL},
            {"op": "add", "path": "/description", "value": "other"},
        ]
        for node in (ids["node"], self.machine.id):
            yield Shape("PATCH", f"/v1/nodes/{node}", changes[:1] + changes[2:])
            yield Shape("PATCH", f"/v1/nodes/{node}", [
                {"op": "remove", "path": "/extra/a"}, {"op": "add", "path": "/owner",
                                                       "value": project.id}])
            yield Shape("PUT", f"/v1/nodes/{node}/maintenance", {"reason": "test"})
            yield Shape("PUT", f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_A", "CUSTOM_B"]})
            yield Shape("POST", f"/v1/nodes/{node}/vifs", {"id": ids["network port"]})
        yield Shape("PATCH", f"/v1/nodes/{ids['node']}", changes)

    def of_states(self):
        node, drive = self.machine.id, {"meta_data": {"name": "n"}, "user_data": "text",
                                        "network_data": {}}
        erase = {"interface": "deploy", "step": "erase_devices"}
        at = f"/v1/nodes/{node}"
        for target in ("manage", "provide", "inspect", "active", "rebuild", "deleted", "abort",
                       "adopt", "unhold"):
            for named in (node, self.idents["node"]):
                yield Shape("PUT", f"/v1/nodes/{named}/states/provision", {"target": target})
        for body in ({"target": "active", "configdrive": drive},
                     {"target": "active", "deploy_steps": [STEP]},
                     {"target": "clean", "clean_steps": [erase], "disable_ramdisk": False},
                     {"target": "clean", "runbook": "CUSTOM_R"},
                     {"target": "service", "service_steps": [{"interface": "power",
                                                              "step": "reboot"}]},
                     {"target": "rescue", "rescue_password": "x"}):
            yield Shape("PUT", f"{at}/states/provision", body)
        for target in ("power on", "power off", "rebooting", "soft rebooting"):
            yield Shape("PUT", f"{at}/states/power", {"target": target, "timeout": 60})
        yield Shape("PUT", f"{at}/states/boot_mode", {"target": "uefi"})
        yield Shape("PUT", f"{at}/states/secure_boot", {"target": True})
        yield Shape("PUT", f"{at}/states/console", {"enabled": True})
        yield Shape("PUT", f"{at}/states/raid", {"logical_disks": [{"size_gb": 1,
                                                                    "raid_level": "1"}]})
        yield Shape("PUT", f"{at}/management/boot_device", {"boot_device": "pxe",
                                                            "persistent": True})
        yield Shape("PUT", f"{at}/management/inject_nmi", {})
        yield Shape("PUT", f"{at}/management/indicators/led", {"state": "ON"})
        yield Shape("POST", f"{at}/vmedia", {"device_type": "CDROM", "image_url": IMAGE_URL})
        yield Shape("POST", f"{at}/vendor_passthru?method=noop", {"a": 1})

    def of_parts(self):
        ids = self.idents
        link = {"switch_id": "aa:bb:cc:dd:ee:ff", "port_id": "Eth1/1", "switch_info": "leaf1"}
        port = {"node_uuid": ids["node"], "address": OTHER_ADDRESS, "name": "p2",
                "extra": {"a": 1}, "pxe_enabled": True, "physical_network": "physnet",
                "local_link_connection": link, "is_smartnic": False, "category": "c",
                "portgroup_uuid": ids["group"], "description": "text", "vendor": "v"}
        yield Shape("POST", "/v1/ports", port)
        yield Shape("PATCH", f"/v1/ports/{ids['port']}", [
            {"op": "replace", "path": "/extra", "value": {"b": 2}},
            {"op": "add", "path": "/local_link_connection/port_id", "value": "Eth1/2"},
            {"op": "add", "path": "/portgroup_uuid", "value": ids["group"]}])
        group = {"node_uuid": ids["node"], "address": OTHER_ADDRESS, "name": "pg2",
                 "mode": "802.3ad", "properties": {"xmit_hash_policy": "layer3+4"},
                 "extra": {}, "standalone_ports_supported": True}
        yield Shape("POST", "/v1/portgroups", group)
        yield Shape("PATCH", f"/v1/portgroups/{ids['group']}", [
            {"op": "replace", "path": "/mode", "value": "active-backup"},
            {"op": "add", "path": "/extra/a", "value": 1}])
        yield Shape("POST", "/v1/allocations", {
            "name": "a2", "resource_class": "gold", "traits": ["CUSTOM_A"], "extra": {"a": 1},
            "candidate_nodes": [ids["node"], self.machine.id], "owner": self.project.id})
        yield Shape("POST", "/v1/allocations", {"name": "a3", "node": self.machine.id})
        yield Shape("PATCH", f"/v1/allocations/{ids['allocation']}", [
            {"op": "replace", "path": "/name", "value": "a1"},
            {"op": "add", "path": "/extra/a", "value": 1}])

    def of_documents(self):
        ids = self.idents
        yield Shape("POST", "/v1/chassis", {"description": "hall 2", "extra": {"a": {"b": 1}}},
                    "chassis", "nodes")
        yield Shape("PATCH", f"/v1/chassis/{ids['chassis']}", [
            {"op": "replace", "path": "/description", "value": "hall 3"},
            {"op": "add", "path": "/extra/a", "value": 1}], "chassis", "nodes")
        yield Shape("POST", "/v1/deploy_templates", {
            "name": "CUSTOM_U", "steps": [STEP, {**STEP, "step": "b"}], "extra": {"a": 1}},
            "deploy_templates")
        yield Shape("PATCH", f"/v1/deploy_templates/{ids['template']}", [
            {"op": "replace", "path": "/steps", "value": [STEP]},
            {"op": "add", "path": "/extra/a", "value": 1}], "deploy_templates")
        yield Shape("POST", "/v1/runbooks", {
            "name": "CUSTOM_S", "steps": [RUNBOOK_STEP], "extra": {}, "public": False,
            "owner": self.project.id, "description": "text", "traits": ["CUSTOM_A"],
            "disable_ramdisk": False}, "runbooks")
        yield Shape("PATCH", f"/v1/runbooks/{ids['runbook']}", [
            {"op": "replace", "path": "/steps", "value": [RUNBOOK_STEP]},
            {"op": "replace", "path": "/public", "value": True}], "runbooks")
        yield Shape("PUT", f"/v1/runbooks/{ids['runbook']}/traits", {"traits": ["CUSTOM_A"]},
                    "runbooks")

    def of_others(self):
        """What metalmesh does not have, and the calls of Keystone and Neutron."""
        ids, project = self.idents, self.project
        member = project.tokens["member"]
        yield Shape("POST", "/v1/volume/connectors", {
            "node_uuid": ids["node"], "type": "iqn", "connector_id": "iqn.x", "extra": {}})
        yield Shape("POST", "/v1/inspection_rules", {
            "actions": [{"op": "set-attribute", "args": {"path": "/extra/a", "value": 1}}],
            "conditions": [], "sensitive": False, "priority": 0})
        port = {"network_id": project.network, "project_id": project.id, "name": "np",
                "fixed_ips": [], "device_id": ids["node"], "device_owner": "baremetal:none",
                "binding:host_id": ids["node"], "binding:vnic_type": "baremetal",
                "admin_state_up": True}
        yield Shape("POST", "/v2.0/ports", {"port": port}, "network ports", "nodes")
        yield Shape("PUT", f"/v2.0/ports/{ids['network port']}", {"port": {
            "name": "other", "binding:host_id": ids["node"]}}, "network ports", "nodes")
        identity = ({"methods": ["token"], "token": {"id": member}},
                    {"methods": ["password"], "password": {"user": {
                        "name": "alpha", "domain": {"id": "default"}, "password": member}}},
                    {"methods": ["application_credential"], "application_credential": {
                        "id": project.id, "secret": member}})
        for proof in identity:
            yield Shape("POST", "/v3/auth/tokens", {"auth": {
                "identity": proof, "scope": {"project": {"id": project.id}}}}, "nodes")


def odd_idents(fixtures):
    """Ids of these objects, of others, and of none."""
    return [*fixtures.idents.values(), fixtures.machine.id, "kn1", fixtures.project.id,
            fixtures.world.projects["beta"].id, fixtures.project.network, "CUSTOM_T", "metalmesh",
            "00000000-0000-0000-0000-000000000007", "nonsense", "%2e%2e", "%ff", "%00", "a" * 300,
            "control-1", "led", "bios_version", IMAGE_SHA256, "%F0%9F%92%A9"]
