"""OpenStack Ironic's guide "Node Multi-Tenancy" (Apache-2.0): the policy of nodes, ports and
allocations. The server has the rules of the guide, word for word
(control/oslo/tests/data/guide-sections.yaml), all of them accepted by `allow_dangerous`. Each step
has the sentence that it proves.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... guide_policy.py
"""

from guide_site import NOT_THERE, GuideSite
from story import tell


class Story(GuideSite):
    """Both nodes, leased and of one class."""

    def __init__(self):
        super().__init__()
        self.lease()
        for node in ("node-7", "node-10"):
            self.site.ok(f"node set {node} --resource-class gold")

    def addresses(self, project, role):
        """The cards that a project lists."""
        return {row["address"] for row in self.cli(project, role).json("port list")}


# Ironic's guide, Configuring the Bare Metal Service Policy: "An administrator can then modify the
# policy file to expose individual node APIs as follows: [...] "baremetal:node:set_provision_state":
# "rule:is_admin or rule:is_node_owner or rule:is_node_lessee"".
def a_call_is_exposed_to_owner_and_lessee(story):
    for project, node in (("owner", "node-7"), ("lessee", "node-10")):
        # The rule asks for no role: without the file a reader may not.
        reader = story.cli(project, "reader")
        reader.ok(f"node manage {node} --wait 60")
        reader.ok(f"node provide {node} --wait 60")
    # The rules that the file does not have stay as they are.
    reader = story.cli("owner", "reader")
    reader.refused("node set node-7 --extra a=1", "baremetal:node:update_extra")
    # A rule that permits a call replaces no relation: the leased node is the lessee's.
    reader.refused("node manage node-10", "leased to another project")
    # The rule permits it to an admin of any project. A node that is not seen is not there.
    story.cli("other", "admin").refused("node manage node-7", NOT_THERE)
    assert story.site.json("node show node-7")["provision_state"] == "available"


# Ironic's guide, Configuring the Bare Metal Service Policy: "In addition, it is safe to expose the
# `baremetal:node:list` rule, as the node list function now filters non-admins by owner and lessee:
# "baremetal:node:list": """.
def lists_are_filtered_by_owner_and_lessee(story):
    for role in ("admin", "manager", "member", "reader"):
        assert story.names("owner", role) == {"node-7", "node-10"}, role
        assert story.names("lessee", role) == {"node-10"}, role
        assert story.names("other", role) == set(), role
    rows = story.cli("lessee", "reader").json("node list --long")
    assert [row["name"] for row in rows] == ["node-10"], rows


# Ironic's guide, Configuring the Bare Metal Service Policy: "Note that `baremetal:node:list_all`
# permits users to see all nodes regardless of owner/lessee, so it should remain restricted to
# admins."
def only_administrators_see_all_nodes(story):
    seen = {row["name"] for row in story.site.json("node list")}
    assert {"node-7", "node-10"} <= seen, seen
    other = story.cli("other", "admin")
    assert other.json(f"node list --owner {story.project('owner').id}") == []
    for name in ("node-7", "node-10"):
        other.refused(f"node show {name}", NOT_THERE)


# Ironic's guide, Ports: "Port APIs can be similarly exposed to node owners and lessees:
# "baremetal:port:get": "rule:is_admin or rule:is_observer or rule:is_node_owner or
# rule:is_node_lessee" [...] "baremetal:port:list": """.
def ports_are_exposed_to_owner_and_lessee(story):
    seven, ten = set(story.seven.macs), set(story.ten.macs)
    for project, expected in (("owner", seven | ten), ("lessee", ten), ("other", set())):
        for role in ("admin", "reader"):
            assert story.addresses(project, role) == expected, f"{project} {role}"
    (port,) = story.cli("lessee", "reader").json("port list --node node-10")
    assert story.cli("lessee", "reader").json(f"port show {port['uuid']}")["address"] in ten
    for role in ("admin", "reader"):
        story.cli("other", role).refused(f"port show {port['uuid']}", NOT_THERE)


# Ironic's guide, Allocations: "Here is a sample set of allocation policy rules that allow
# non-admins to use allocations effectively: [...] "baremetal:allocation:create_restricted": """.
def non_admins_use_allocations(story):
    member = story.cli("owner", "member")
    made = member.json("allocation create --resource-class gold --name al1 --wait")
    assert made["state"] == "active" and made["node_uuid"] == story.seven.id, made
    # Get, list, update and delete ask for the project alone.
    reader = story.cli("owner", "reader")
    assert [row["name"] for row in reader.json("allocation list")] == ["al1"]
    reader.ok("allocation set al1 --name al2 --extra a=1")
    shown = reader.json("allocation show al2")
    assert shown["uuid"] == made["uuid"] and shown["extra"] == {"a": 1}, shown
    for project in ("lessee", "other"):
        assert story.cli(project, "member").json("allocation list") == []
        story.cli(project, "member").refused(f"allocation show {made['uuid']}", NOT_THERE)
    # The rules permit the end of it to an admin of any project, which has nothing to do with it.
    story.cli("other", "admin").refused(f"allocation delete {made['uuid']}", "")
    assert reader.json("allocation show al2")["state"] == "active"
    # Nor does `create_restricted` let a project allocate in the name of another one.
    other = story.cli("other", "member")
    other.refused(f"allocation create --resource-class gold --owner {story.project('lessee').id}",
                  "not matching")
    reader.ok("allocation delete al2")
    assert reader.json("allocation list") == []


STORY = (
    a_call_is_exposed_to_owner_and_lessee,
    lists_are_filtered_by_owner_and_lessee,
    only_administrators_see_all_nodes,
    ports_are_exposed_to_owner_and_lessee,
    non_admins_use_allocations,
)

tell(STORY, Story())
