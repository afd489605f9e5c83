"""OpenStack Ironic's guide "Node Multi-Tenancy" (Apache-2.0): owner and lessee, under the rules
that Ironic 39.0.0 has without a policy file. Each step has the sentence that it proves.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... guide_tenancy.py
"""

from ironic_calls import wait_until
from ironic_world import ROLES
from guide_site import NOT_THERE, GuideSite
from story import tell

LEASES = "metalmesh.admin.v1.LeaseService"


# Ironic's guide, Setting the Owner and Lessee: "Non-administrative access to a node is controlled
# through a node's `owner` or `lessee` attribute: baremetal node set --owner
# 080925ee2f464a2c9dce91ee6ea354e2 node-7; baremetal node set --lessee
# 2a210e5ff114c8f2b6e994218f51a904 node-10".
def access_is_by_owner_and_lessee(guide):
    for project in ("owner", "lessee", "other"):
        assert guide.names(project, "admin") == set(), project
    # A lease is granted by an owner, so that a node without one gets no lessee.
    lessee = guide.plain("lessee")
    guide.site.refused(f"node set --lessee {lessee} node-10", "set the owner first")
    guide.lease()
    shown = guide.site.json("node show node-10")
    assert shown["owner"] == guide.project("owner").id, shown
    assert shown["lessee"] == guide.project("lessee").id, shown
    assert guide.site.json("node show node-7")["lessee"] is None


# Ironic's guide, Node Multi-Tenancy: "This feature enables non-admins to perform API actions on
# nodes, limited by policy configuration." And of its policy: "By default, the Bare Metal service
# policy is configured so that a node owner or lessee has no access to any node APIs." Since Ironic
# 2024.1 they have access by default, and so here.
def access_is_as_ironics_rules_have_it(guide):
    both = {"node-7", "node-10"}
    for project, expected in (("owner", both), ("lessee", {"node-10"}), ("other", set())):
        for role in ("admin", "manager", "member", "reader"):
            assert guide.names(project, role) == expected, f"{project} {role}"
    for project in ("owner", "lessee"):
        reader = guide.cli(project, "reader")
        reader.ok("node show node-10")
        reader.refused("node set node-10 --extra a=1", "baremetal:node:update_extra")
        reader.refused("node manage node-10", "baremetal:node:set_provision_state")
        reader.refused("node power off node-10", "baremetal:node:set_power_state")


# Ironic's guide, Node Multi-Tenancy: "Owner: owns specific nodes and performs administrative
# actions on them".
def an_owner_administers_its_node(guide):
    owner = guide.cli("owner", "manager")
    owner.ok("node set node-7 --extra rack=4 --property cpus=8 --description mine "
             "--driver-info redfish_address=https://10.9.0.7 --resource-class gold")
    owner.ok("node trait add node-7 CUSTOM_FAST")
    shown = owner.json("node show node-7")
    assert shown["extra"] == {"rack": 4} and shown["resource_class"] == "gold", shown
    assert shown["driver_info"]["redfish_address"] == "https://10.9.0.7", shown
    assert shown["traits"] == ["CUSTOM_FAST"], shown
    made = owner.json(f"port create 52:54:00:00:07:01 --node {guide.seven.id}")
    owner.ok(f"port delete {made['uuid']}")
    owner.ok("node maintenance set node-7 --reason fan")
    owner.ok("node maintenance unset node-7")
    owner.ok("node power off node-7")
    wait_until(lambda: "OFF" in guide.seven.orders, "the node is powered off")
    owner.ok("node power on node-7")
    wait_until(lambda: "ON" in guide.seven.orders, "the node is powered on")
    guide.seven.waits()
    # The owner itself is the site's word.
    other = guide.plain("other")
    owner.refused(f"node set node-7 --owner {other}", "baremetal:node:update:owner")


# Ironic's guide, Node Multi-Tenancy: "Lessee: receives temporary and limited access to a node". Its
# limits:
def a_lessee_has_limited_access(guide):
    lessee = guide.cli("lessee", "manager")
    lessee.ok("node set node-10 --extra mine=1 --instance-info display_name=web")
    for change, rule in (
            ("node set node-10 --driver-info a=b", "baremetal:node:update:driver_info"),
            ("node set node-10 --property cpus=8", "baremetal:node:update:properties"),
            (f"node set node-10 --lessee {guide.plain('other')}", "baremetal:node:update:lessee"),
            ("node trait add node-10 CUSTOM_FAST", "baremetal:node:traits:set"),
            (f"port create 52:54:00:00:10:01 --node {guide.ten.id}", "baremetal:port:create")):
        lessee.refused(change, rule)
    # Where the hardware is reached is the owner's to know.
    for project, is_masked in (("lessee", True), ("owner", False)):
        shown = guide.cli(project, "reader").json("node show node-10")
        assert ("permission" in str(shown["driver_info"])) == is_masked, shown
    # While it is leased the lessee controls it, and the owner does not.
    lessee.ok("node power off node-10")
    wait_until(lambda: "OFF" in guide.ten.orders, "the node is powered off")
    owner = guide.cli("owner", "manager")
    owner.refused("node power on node-10", "leased to another project")
    lessee.ok("node power on node-10")
    wait_until(lambda: "ON" in guide.ten.orders, "the node is powered on")
    guide.ten.waits()


# Ironic's guide, Node Multi-Tenancy: "Lessee: receives temporary and limited access to a node". Its
# time:
def a_lessee_has_temporary_access(guide):
    owner, lessee = guide.project("owner"), guide.project("lessee")
    found = owner.owner(f"{LEASES}/Get", project=owner.id, machine=guide.ten.id)["machine"]
    lease = found["lease"]
    assert lease["lessee"] == lessee.id and lease["expiresAt"], lease
    guide.site.ok("node unset node-10 --lessee")
    assert guide.names("lessee", "admin") == set()
    guide.cli("lessee", "admin").refused("node show node-10", NOT_THERE)
    # What the lessee wrote ends with its lease.
    shown = guide.site.json("node show node-10")
    assert shown["lessee"] is None and shown["extra"] == {} and shown["instance_info"] == {}, shown


# Ironic's guide, Node Multi-Tenancy: "limited by policy configuration". A project that is neither
# is told of a node what it is told of one that does not exist.
def nobody_else_has_access(guide):
    for role in ROLES:
        other = guide.cli("other", role)
        told = {other.refused(f"node show {name}", NOT_THERE).replace(name, "NODE")
                for name in ("node-7", "node-10", "node-99")}
        assert len({text.split("(HTTP")[0] for text in told}) == 1, told
    other = guide.cli("other", "admin")
    for call in ("node set node-7 --extra a=1", "node manage node-7", "node power off node-7",
                 "node trait list node-7", "node vif list node-7", "node validate node-7"):
        other.refused(call, NOT_THERE)


STORY = (
    access_is_by_owner_and_lessee,
    access_is_as_ironics_rules_have_it,
    an_owner_administers_its_node,
    a_lessee_has_limited_access,
    a_lessee_has_temporary_access,
    nobody_else_has_access,
)

tell(STORY, GuideSite())
