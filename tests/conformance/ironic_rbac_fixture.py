"""The objects that Ironic's cases of access control are about, made through the API: machines of an
owner, one of them leased, one that nobody owns, their ports, allocations and documents.
"""

from ironic_calls import wait_until
from ironic_world import World

# Ids in the texts of the published cases.
OWNER_NODE = "1ab63b9e-66d7-4cd7-8618-dddd0f9f7881"
LEASED_NODE = "38d5abed-c585-4fce-a57e-a2ffc2a2ec6f"
OTHER_NODE = "573208e5-cd41-4e26-8f06-ef44022b3793"
UNOWNED_NODE = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"
# Nodes that cases change.
CHANGED_NODES = (OWNER_NODE, LEASED_NODE, UNOWNED_NODE)
CHILD = "3c3b8adb-edd7-3ed0-8e82-aab714d8411a"
OTHER_PORT = "abfd8dbb-1732-449a-b760-2224035c6b99"
OWNER_GROUP = "b16efcf3-2990-41a1-bc1d-5e2c16f3d5fc"
LEASED_GROUP = "6eb02b44-18a3-4659-8c0b-8d2802581ae4"
OTHER_GROUP = "5810f41c-6585-41fc-b9c9-a94f50d421b5"
OWNER_MACS = ("00:00:00:00:00:01", "00:00:00:00:00:02")
LEASED_MAC, OTHER_MAC = "52:54:00:cf:2d:31", "00:00:00:00:00:ff"
ALLOCATIONS = {
    "owner": ("c2f1b9a4-1a0e-4d0b-9f2c-3a7f6a3d6c01", OWNER_NODE, "CUSTOM_TEST"),
    "lessee": ("c2f1b9a4-1a0e-4d0b-9f2c-3a7f6a3d6c02", LEASED_NODE, "CUSTOM_LEASED"),
}
RUNBOOK = "8e3c5d0a-3f2f-4a3e-9d3c-5b1f0c2d7a01"
TEMPLATE = "8e3c5d0a-3f2f-4a3e-9d3c-5b1f0c2d7a02"
CHASSIS = "8e3c5d0a-3f2f-4a3e-9d3c-5b1f0c2d7a03"
VIF, TRAIT = "0e21d58f-5de2-4956-85ff-33935ea1ca01", "CUSTOM_MEOW"
PUBLISHED_PROJECTS = {
    "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205": "owner",
    "f11853c7-fa9c-4db3-a477-c9d8e0dbbf13": "lessee",
    "ae64129e-b188-4662-b014-4127f4366ee6": "third",
}


class Fixture:
    """The objects, and the callers."""

    def __init__(self):
        self.world = World("owner", "lessee", "third")
        self.site = self.world.site
        projects = self.world.projects
        self.world.machine("owned", 1, OWNER_NODE, OWNER_MACS)
        self.world.machine("leased", 2, LEASED_NODE, (LEASED_MAC,))
        # Values that mean nothing here, and those that stand for them.
        self.texts = {number: projects[name].id for number, name in PUBLISHED_PROJECTS.items()}
        self.texts.update({"new_owner": projects["third"].id, "1234": projects["third"].id,
                           "198566a5-a609-4463-9800-e8920be7c2fa": projects["third"].id,
                           "fake-driverz": "metalmesh", "fake-hardware": "metalmesh",
                           "fake": "metalmesh",
                           "18a552fb-dcd2-43bf-9302-e4c93287be11": UNOWNED_NODE})
        self.make()
        self.names = self.idents()

    def idents(self):
        """Ids by the names that stand for them in paths and bodies."""
        own_port, leased_port = self.card(OWNER_MACS[0]), self.card(LEASED_MAC)
        return {
            "node_ident": UNOWNED_NODE, "owner_node_ident": OWNER_NODE,
            "lessee_node_ident": LEASED_NODE, "allocated_node_ident": LEASED_NODE,
            "lessee_port_ident": leased_port, "owner_port_ident": own_port,
            "other_port_ident": OTHER_PORT, "port_ident": own_port,
            "lessee_portgroup_ident": LEASED_GROUP, "owner_portgroup_ident": OWNER_GROUP,
            "other_portgroup_ident": OTHER_GROUP, "portgroup_ident": OWNER_GROUP,
            "owner_allocation": ALLOCATIONS["owner"][0],
            "lessee_allocation": ALLOCATIONS["lessee"][0],
            "allocation_ident": ALLOCATIONS["owner"][0],
            "trait": TRAIT, "vif_ident": VIF, "ind_component": "chassis", "component": "chassis",
            "ind_ident": "led", "runbook_ident": RUNBOOK, "deploy_template_ident": TEMPLATE,
            "chassis_ident": CHASSIS, "conductor_ident": "control-1",
            # No driver of this name, in the published fixture as well.
            "driver_name": "fake-driverz-of-nobody", "bios_setting": "bios_version",
            "owned_history_ident": self.event(OWNER_NODE),
            "lessee_history_ident": self.event(LEASED_NODE),
            "history_ident": self.event(UNOWNED_NODE),
        }

    def token(self, headers):
        """The token of the caller that a case names by its headers."""
        heads = {name.lower(): value for name, value in headers.items()}
        role = heads["x-roles"].split(",")[0]
        if heads.get("openstack-system-scope") == "all":
            return self.world.tokens[role]
        project = PUBLISHED_PROJECTS.get(heads.get("x-project-id"), "third")
        return self.world.projects[project].tokens[role]

    def make(self):
        """Makes each object that is not there."""
        projects = self.world.projects
        owner, lessee = projects["owner"].id, projects["lessee"].id
        self.unowned()
        self.node(OTHER_NODE, None)
        for ident, resource_class in ((OWNER_NODE, "CUSTOM_TEST"), (LEASED_NODE, "CUSTOM_LEASED")):
            self.change(ident, owner=owner, resource_class=resource_class, driver="metalmesh")
        self.change(OWNER_NODE, lessee=None)
        self.change(LEASED_NODE, lessee=lessee)
        # Ironic's fixture has a child of nobody as well; here a child has the owner of its parent.
        self.node(CHILD, owner, parent_node=OWNER_NODE)
        self.there(f"/v1/ports/{OTHER_PORT}", "/v1/ports", {
            "uuid": OTHER_PORT, "node_uuid": OTHER_NODE, "address": OTHER_MAC})
        for group, node, name in ((OWNER_GROUP, OWNER_NODE, "magicfoo"),
                                  (LEASED_GROUP, LEASED_NODE, "leased"),
                                  (OTHER_GROUP, OTHER_NODE, "corgis_rule_the_world")):
            self.there(f"/v1/portgroups/{group}", "/v1/portgroups",
                       {"uuid": group, "node_uuid": node, "name": name})
        for project, (ident, node, resource_class) in ALLOCATIONS.items():
            self.allocation(projects[project], ident, node, resource_class)
        book = {"interface": "raid", "step": "noop", "args": {}, "order": 0}
        self.there(f"/v1/runbooks/{RUNBOOK}", "/v1/runbooks", {
            "uuid": RUNBOOK, "name": "CUSTOM_BOOK", "owner": owner, "steps": [book]})
        step = {"interface": "raid", "step": "noop", "args": {}, "priority": 0}
        self.there(f"/v1/deploy_templates/{TEMPLATE}", "/v1/deploy_templates", {
            "uuid": TEMPLATE, "name": "CUSTOM_TEMPLATE", "steps": [step]})
        self.there(f"/v1/chassis/{CHASSIS}", "/v1/chassis", {"uuid": CHASSIS})
        for node in CHANGED_NODES:
            self.site.ok("PUT", f"/v1/nodes/{node}/traits", {"traits": [TRAIT]})
            self.vif(node)

    def there(self, path, collection, body):
        """An object; the one that a case renamed or gave away is made anew."""
        found = self.site.get(path)
        named = found.status == 200 and all(
            found.json.get(name) == body[name] for name in ("name", "owner") if name in body)
        if found.status == 200 and not named:
            self.site.ok("DELETE", path)
        if found.status == 404 or not named:
            self.site.ok("POST", collection, body)

    def node(self, ident, owner, **more):
        if self.site.get(f"/v1/nodes/{ident}").status == 404:
            body = {"uuid": ident, "driver": "metalmesh", **more}
            if owner:
                body["owner"] = owner
            self.site.ok("POST", "/v1/nodes", body)

    def unowned(self):
        """The machine that nobody owns; it boots anew if a case deleted it."""
        if self.site.get(f"/v1/nodes/{UNOWNED_NODE}").status == 404:
            self.world.machine("unowned", 3, UNOWNED_NODE)

    def event(self, node):
        """The id of the first event of a history. A machine that boots anew has it again."""
        return self.site.ok("GET", f"/v1/nodes/{node}/history")["history"][0]["uuid"]

    def card(self, mac):
        """The port of a card of a machine."""
        (port,) = self.site.ok("GET", f"/v1/ports?address={mac}")["ports"]
        return port["uuid"]

    def allocation(self, project, ident, node, resource_class):
        """The node of a project, held by its allocation."""
        found = self.site.get(f"/v1/allocations/{ident}")
        if found.status == 200 and found.json["state"] == "active":
            return
        if found.status == 200:
            self.site.ok("DELETE", f"/v1/allocations/{ident}")
        member = project.as_("member")
        member.ok("POST", "/v1/allocations", {
            "uuid": ident, "resource_class": resource_class, "candidate_nodes": [node]})
        wait_until(
            lambda: member.ok("GET", f"/v1/allocations/{ident}")["state"] == "active",
            f"allocation of {node}")

    def vif(self, node):
        attached = [one["id"] for one in self.site.ok("GET", f"/v1/nodes/{node}/vifs")["vifs"]]
        for other in attached:
            if other != VIF:
                self.site.ok("DELETE", f"/v1/nodes/{node}/vifs/{other}")
        if VIF not in attached:
            self.site.ok("POST", f"/v1/nodes/{node}/vifs", {"id": VIF})

    def change(self, ident, **fields):
        """Sets fields of a node that are not as wanted, once it is in no transition of a case before."""
        path = f"/v1/nodes/{ident}"

        def is_set():
            found = self.site.ok("GET", path)
            patch = [{"op": "add", "path": f"/{name}", "value": value}
                     for name, value in fields.items() if found.get(name) != value]
            if not patch:
                return True
            answer = self.site.patch(path, patch)
            assert answer.status in (200, 409), f"{path} {patch}: {answer}"
            return answer.status == 200

        wait_until(is_set, f"change of {ident}")

    def repair(self, answer):
        """Undoes an accepted change: of the objects that it made, changed or deleted."""
        made = answer.headers.get("Location", "")
        ident = answer.json.get("uuid") if isinstance(answer.json, dict) else None
        if answer.status == 201 and ident:
            self.site.delete(f"/v1/{made.split('/v1/')[1]}")
        self.unowned()
        for node in CHANGED_NODES:
            self.site.delete(f"/v1/nodes/{node}/maintenance")
            self.change(node, name=None, retired=False, protected=False, instance_info={},
                        driver_info={}, description=None)
        self.make()
