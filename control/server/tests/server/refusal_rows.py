"""Calls that published clients found accepted, or refused with another code. A row is the subject,
the caller, the method, its request, and the expected code, or OK.
"""

import uuid as uuids

from connectrpc.code import Code

import image_server
from caller import HOUR, NEWEST
from world import GIB

OK = "OK"
INVALID, PRECONDITION = Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION
DENIED = Code.PERMISSION_DENIED
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + "A" * 42 + " web@example.com"


def rows(site):
    for part in (of_tenants, of_catalogue, of_machines, of_allocation, of_networks,
                 of_super_networks, of_addresses, of_agents, of_tokens, of_strangers):
        for row in part(site):
            yield part.__name__, *row


def of_tenants(site):
    """Owners stay, and so does a personal tenant (issue 20: A2, C7)."""
    owner, tag = site.owner, site.tag
    member = {"login": site.tenant, "member": tag}
    yield ("the last owner leaves", owner, "api.TenantService/RemoveMember", member, PRECONDITION)
    yield ("the last owner becomes an editor", owner, "api.TenantService/UpdateMember",
           {**member, "role": "TENANT_ROLE_EDITOR"}, PRECONDITION)
    yield ("an admin removes the last owner", site.admin, "admin.TenantService/RemoveMember",
           {"tenant": site.tenant, "member": tag}, PRECONDITION)
    yield ("one's own personal tenant is deleted", owner, "api.TenantService/Delete",
           {"login": tag}, INVALID)
    yield ("a tenant with projects is deleted", owner, "api.TenantService/Delete",
           {"login": site.tenant}, PRECONDITION)


def of_catalogue(site):
    """Sizes, partitions, images and layouts (issue 20: A6, C2, C4, C13 to C15)."""
    admin, tag = site.admin, site.tag
    limit = lambda kind, low, high: {"type": f"SIZE_CONSTRAINT_TYPE_{kind}", "min": low,
                                     "max": high}
    overlapping = [limit("CORES", 1, 9), limit("MEMORY", GIB, 8 * GIB),
                   limit("STORAGE", GIB, 200 * GIB)]
    inner = [limit("CORES", 1, 1), limit("MEMORY", 2 * GIB, 3 * GIB),
             limit("STORAGE", 2 * GIB, 3 * GIB)]
    for what, limits in (("wider than", overlapping), ("within", inner)):
        yield (f"a size {what} another", admin, "admin.SizeService/Create",
               {"size": {"id": f"{tag}-over", "constraints": limits}}, INVALID)
    yield ("a size that machines have is deleted", admin, "admin.SizeService/Delete", {"id": tag},
           PRECONDITION)
    yield ("a size that a layout names is deleted", admin, "admin.SizeService/Delete",
           {"id": f"{tag}-gpu"}, PRECONDITION)
    yield ("a partition with machines is deleted", admin, "admin.PartitionService/Delete",
           {"id": tag}, PRECONDITION)
    yield ("a partition with reservations is deleted", admin, "admin.PartitionService/Delete",
           {"id": f"{tag}-six"}, PRECONDITION)
    yield ("an image without features", admin, "admin.ImageService/Create",
           {"image": {"id": f"{tag}-14.0.0", "url": image_server.url("i")}}, INVALID)
    yield ("an image that machines have is deleted", admin, "admin.ImageService/Delete",
           {"id": site.image}, PRECONDITION)
    yield ("a size without a constraint of images is tried", site.owner,
           "api.SizeImageConstraintService/Try", {"size": f"{tag}-gpu", "image": site.image},
           Code.NOT_FOUND)
    yield ("the newest image of an operating system without a version", site.owner,
           "api.ImageService/Latest", {"os": tag}, OK)
    disk = [{"device": "/dev/sda", "partitions": [
        {"number": 0, "size": 0, "gptType": "GPT_TYPE_LINUX"}]}]
    root = [{"device": "/dev/sda1", "format": "FORMAT_EXT4", "path": "/"}]
    yield ("a partition of a disk without a number", admin, "admin.FilesystemService/Create",
           {"filesystemLayout": {"id": f"{tag}-zero", "disks": disk, "filesystems": root,
                                 "constraints": {"sizes": [f"{tag}-gpu"],
                                                 "images": {"firewall": ">= 3"}}}}, OK)


def of_machines(site):
    """Living and locked machines (issue 20: A6, C1, C8, C12)."""
    admin, owner, of = site.admin, site.owner, {"project": site.project}
    for what, node in (("allocated", site.node), ("waiting", site.idle)):
        yield (f"a living machine that is {what} is deleted", admin, "admin.MachineService/Delete",
               {"uuid": node}, PRECONDITION)
    locked = {"uuid": site.idle, "state": "MACHINE_STATE_LOCKED", "description": "looked at"}
    yield ("a machine is locked", admin, "admin.MachineService/SetState", locked, OK)
    yield ("a locked machine is tainted", admin, "admin.MachineService/SetState",
           {**locked, "state": "MACHINE_STATE_TAINTED"}, PRECONDITION)
    yield ("a locked machine is locked", admin, "admin.MachineService/SetState", locked,
           PRECONDITION)
    for command, code in (("OFF", PRECONDITION), ("CYCLE", PRECONDITION),
                          ("IDENTIFY_LED_ON", OK)):
        yield (f"a locked machine gets {command}", admin, "admin.MachineService/BMCCommand",
               {"uuid": site.idle, "command": f"MACHINE_BMC_COMMAND_{command}"}, code)
    yield ("a machine is unlocked", admin, "admin.MachineService/SetState",
           {"uuid": site.idle, "state": "MACHINE_STATE_AVAILABLE"}, OK)
    update = {**of, "uuid": site.node, "updateMeta": NEWEST}
    yield ("a text that is no key, on update", owner, "api.MachineService/Update",
           {**update, "sshPublicKeys": ["no key"]}, INVALID)
    yield ("another key once it is installed", owner, "api.MachineService/Update",
           {**update, "sshPublicKeys": [KEY.replace("AAA web", "AAB web")]}, PRECONDITION)


def of_allocation(site):
    """Machine creates that fail before anything is allocated (issue 20: A7, C4, C8, C13)."""
    owner, tag = site.owner, site.tag
    good = {"project": site.project, "name": "next", "partition": tag, "size": tag,
            "image": site.image, "allocationType": "MACHINE_ALLOCATION_TYPE_MACHINE",
            "networks": [{"network": site.network}]}
    cases = [
        ("a text that is no SSH key", {"sshPublicKeys": ["no key"]}, INVALID),
        ("a firewall's specification", {"firewallSpec": {"firewallRules": {}}}, INVALID),
        ("no type", {"allocationType": "MACHINE_ALLOCATION_TYPE_UNSPECIFIED"}, INVALID),
        ("no network", {"networks": []}, INVALID),
        ("one network twice", {"networks": [{"network": site.network}] * 2}, INVALID),
        ("an underlay", {"networks": [{"network": f"underlay-{tag}"}]}, INVALID),
        ("a super network", {"networks": [{"network": f"super-{tag}"}]}, INVALID),
        ("an external network alone", {"networks": [{"network": f"external-{tag}"}]}, INVALID),
        ("a network of another partition", {"networks": [{"network": site.both}]}, INVALID),
        ("an address that nobody has", {"networks": [{"network": site.network,
                                                      "ips": ["10.99.0.1"]}]}, Code.NOT_FOUND),
        ("an image for firewalls", {"image": "firewall-3.0.1"}, INVALID),
        ("an image that is not there", {"image": "absent-1.0.0"}, Code.NOT_FOUND),
        ("a layout that is not there", {"filesystemLayout": "absent"}, Code.NOT_FOUND),
        ("a partition that is not there", {"partition": "absent"}, Code.NOT_FOUND),
        ("an image that the size excludes", {"image": f"{tag}-11.0.0",
                                             "filesystemLayout": "default"}, INVALID),
        ("a machine that is allocated", {"uuid": site.node}, DENIED),
    ]
    site.admin("admin.ImageService/Create", image={
        "id": f"{tag}-11.0.0", "url": image_server.url("old"),
        "features": ["IMAGE_FEATURE_MACHINE"],
        "classification": "IMAGE_CLASSIFICATION_SUPPORTED"})
    for what, fields, code in cases:
        yield (what, owner, "api.MachineService/Create", {**good, **fields}, code)
    named = {name: value for name, value in good.items() if name not in ("partition", "size")}
    yield ("an allocated machine by its id", site.admin, "api.MachineService/Create",
           {**named, "uuid": site.node}, PRECONDITION)
    yield ("an image without its last number", site.admin.trial(), "api.MachineService/Create",
           {**good, "image": f"{tag}-12"}, OK)


def of_networks(site):
    """Networks without a project, with an id that exists, and nonsense (issue 20: A3, C5, C6, C12,
    C13, C15)."""
    owner, admin, tag, of = site.owner, site.admin, site.tag, {"project": site.project}
    create = "admin.NetworkService/Create"
    # A tenant is told of no project that it is not in, and it is in none without a name.
    for who, caller, code in (("an admin", admin, OK), ("a tenant", owner, Code.NOT_FOUND)):
        for key, fields in (("List", {}), ("ListBaseNetworks", {}),
                            ("Get", {"id": f"external-{tag}"})):
            yield (f"{who} names no project", caller, f"api.NetworkService/{key}", fields, code)
    for what, fields in (("nothing else", {}), ("a type", {"type": "NETWORK_TYPE_SUPER"}),
                         ("nonsense", {"type": "NETWORK_TYPE_SUPER", "partition": "absent",
                                       "prefixes": ["10.0.0.0/8"], "vrf": 1})):
        yield (f"an existing id and {what}", admin, create, {"id": f"super-{tag}", **fields},
               Code.ALREADY_EXISTS)
    yield ("prefixes that overlap another's", admin, create,
           {"id": f"over-{tag}", "type": "NETWORK_TYPE_EXTERNAL", "prefixes": ["192.0.2.128/25"],
            "destinationPrefixes": ["0.0.0.0/0"], "partition": tag, "vrf": 99},
           Code.ALREADY_EXISTS)
    yield ("destination prefixes of both families beside IPv4", admin, create,
           {"id": f"mixed-{tag}", "type": "NETWORK_TYPE_EXTERNAL", "prefixes": ["192.0.3.0/24"],
            "destinationPrefixes": ["0.0.0.0/0", "::/0"], "partition": tag, "vrf": 98}, INVALID)
    parent = {**of, "parentNetwork": f"super-{tag}"}
    yield ("a child shorter than its parent", owner, "api.NetworkService/Create",
           {**parent, "length": {"ipv4": 8}}, INVALID)
    yield ("a child of a family that its parent lacks", owner, "api.NetworkService/Create",
           {**parent, "addressFamily": "NETWORK_ADDRESS_FAMILY_V6"}, INVALID)
    yield ("an underlay's name is changed", admin, "admin.NetworkService/Update",
           {"id": f"underlay-{tag}", "updateMeta": NEWEST, "name": "below"}, OK)
    yield ("announcable prefixes are taken away", admin, "admin.NetworkService/Update",
           {"id": f"spaces-{tag}", "updateMeta": NEWEST, "force": True}, OK)
    yield ("a network with addresses is deleted", owner, "api.NetworkService/Delete",
           {**of, "id": site.network}, PRECONDITION)


def of_super_networks(site):
    """Super networks of each kind (issue 20: C6)."""
    admin, tag, of = site.admin, site.tag, {"project": site.project}
    create, length = "admin.NetworkService/Create", {"defaultChildPrefixLength": {"ipv4": 24}}
    kind = lambda name: {"type": f"NETWORK_TYPE_{name}", **length}
    yield ("a super network without a partition", admin, create,
           {"id": f"wide-{tag}", **kind("SUPER"), "prefixes": ["10.110.0.0/16"]}, OK)
    yield ("a super network of a project", admin, create,
           {"id": f"own-{tag}", **of, **kind("SUPER"), "prefixes": ["10.111.0.0/16"]}, OK)
    spaces = {**kind("SUPER_NAMESPACED"), "prefixes": ["10.112.0.0/16"]}
    yield ("a namespaced super network with a VRF and without a project", admin, create,
           {"id": f"spaces2-{tag}", **spaces, "vrf": 400}, INVALID)
    yield ("a namespaced super network of a project with a VRF", admin, create,
           {"id": f"spaces3-{tag}", **spaces, **of, "vrf": 401}, OK)


def of_addresses(site):
    """Addresses of underlays and of absent families (issue 20: A1, A7, C12, C13)."""
    owner, tag, of = site.owner, site.tag, {"project": site.project}
    create = "api.IPService/Create"
    yield ("a tenant takes an underlay's address", owner, create,
           {**of, "network": f"underlay-{tag}"}, DENIED)
    here = {**of, "network": site.network}
    yield ("an unspecified type", owner, create, {**here, "type": "IP_TYPE_UNSPECIFIED"}, INVALID)
    yield ("an unspecified family", owner, create,
           {**here, "addressFamily": "IP_ADDRESS_FAMILY_UNSPECIFIED"}, INVALID)
    yield ("a family that the network lacks", owner, create,
           {**here, "addressFamily": "IP_ADDRESS_FAMILY_V6"}, INVALID)
    yield ("an address that is taken", owner, create, {**here, "ip": site.ip}, INVALID)
    yield ("an address of no prefix", owner, create, {**here, "ip": "10.99.0.1"}, INVALID)
    yield ("a static address becomes ephemeral", owner, "api.IPService/Update",
           {**of, "ip": site.ip_six, "updateMeta": NEWEST, "type": "IP_TYPE_EPHEMERAL"}, INVALID)


def of_agents(site):
    """Registrations that are not whole (issue 20: C11)."""
    node, number = str(uuids.uuid4()), 5
    site.agent("infra.BootService/Dhcp", uuid=node, partition=site.tag)
    hammer = site.admin.as_(site.agent("infra.BootService/MachineToken", uuid=node,
                                       user="pixiecore", expires=HOUR).secret)
    report = site.report(node, number, "02:00:00:00:01:05")
    lone = {**report["hardware"], "nics": [{**report["hardware"]["nics"][0], "neighbors":
                                            report["hardware"]["nics"][0]["neighbors"][:1]}]}
    register = "infra.BootService/Register"
    without = lambda name: {key: value for key, value in report.items() if key != name}
    yield ("a machine without hardware", hammer, register, without("hardware"), INVALID)
    yield ("a machine without a BIOS", hammer, register, without("bios"), INVALID)
    yield ("a machine that hears one switch", hammer, register, {**report, "hardware": lone},
           PRECONDITION)
    yield ("a machine with two switches", hammer.trial(), register, report, OK)


def of_tokens(site):
    """Methods among those of another visibility (issue 20: C10)."""
    create = "api.TokenService/Create"
    permission = lambda kind, *methods: {"expires": HOUR, "permissions": [{kind: {"methods": [
        f"/metalstack.api.v2.{method}" for method in methods]}}]}
    yield ("a method of a project among one's own", site.owner, create,
           permission("self", "IPService/List"), DENIED)
    yield ("a method of oneself among the public ones", site.owner, create,
           permission("public", "UserService/Get"), DENIED)
    yield ("one's own method", site.owner, create, permission("self", "UserService/Get"), OK)
    yield ("a public method", site.owner, create, permission("public", "VersionService/Get"), OK)
    yield ("a method that is not there", site.owner, create,
           permission("self", "UserService/Absent"), DENIED)


def of_strangers(site):
    """Calls without a token or about foreign objects (issue 20: C13)."""
    nobody, of = site.admin.as_(None), {"project": site.project}
    wrong = site.admin.as_(site.owner.secret[:-4] + "AAAA")
    yield ("no token", nobody, "api.NetworkService/List", of, DENIED)
    yield ("no token for a method that is audited", nobody, "api.NetworkService/Create", of,
           DENIED)
    yield ("no token for an operator's method", nobody, "admin.MachineService/Delete",
           {"uuid": site.node}, DENIED)
    yield ("a token with a wrong signature", wrong, "api.NetworkService/List", of,
           Code.UNAUTHENTICATED)
    yield ("a tenant calls an operator's method", site.owner, "admin.TenantService/List", {},
           DENIED)
    for what, key, fields in (
            ("a foreign project", "api.ProjectService/Get", of),
            ("a foreign network", "api.NetworkService/Get", {**of, "id": site.network}),
            ("a foreign address", "api.IPService/Get", {**of, "ip": site.ip}),
            ("a foreign machine", "api.MachineService/Get", {**of, "uuid": site.node}),
            ("a foreign tenant", "api.TenantService/Get", {"login": site.tenant})):
        yield (what, site.friend, key, fields, Code.NOT_FOUND)
    guest = {"expires": HOUR, "projectRoles": {site.project: "PROJECT_ROLE_VIEWER"}}
    yield ("a token for a foreign project", site.friend, "api.TokenService/Create", guest,
           DENIED)
