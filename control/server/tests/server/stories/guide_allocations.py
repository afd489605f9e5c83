"""OpenStack Ironic's guide "Node Multi-Tenancy" (Apache-2.0): allocations, under the rules that
Ironic 39.0.0 has without a policy file. Each step has the sentence that it proves.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... guide_allocations.py
"""

from guide_site import NOT_THERE, GuideSite
from story import tell

CREATE = "allocation create --resource-class gold"


class Story(GuideSite):
    """The owner's node, the leased one, and one of the site, all of one class."""

    def __init__(self):
        super().__init__()
        self.lease()
        self.free = self.world.machine("m1", 3)
        for node in ("node-7", "node-10", self.free.id):
            self.site.ok(f"node set {node} --resource-class gold")


# Ironic's guide, Allocations: "Allocations respect node tenancy as well. A restricted allocation
# creates an allocation tied to a project".
def an_allocation_is_tied_to_its_project(story):
    member = story.cli("owner", "member")
    made = member.json(f"{CREATE} --name al1 --wait")
    assert made["owner"] == story.project("owner").id and made["state"] == "active", made
    assert member.json("node show node-7")["allocation_uuid"] == made["uuid"]
    # It is the project's own: others neither see nor end it.
    for project in ("lessee", "other"):
        cli = story.cli(project, "admin")
        assert cli.json("allocation list") == [], project
        for verb in ("show", "delete"):
            cli.refused(f"allocation {verb} {made['uuid']}", NOT_THERE)
    # In the name of another one nobody creates it, and without the right nobody at all.
    named = f"--owner {story.project('owner').id}"
    story.cli("other", "admin").refused(f"{CREATE} {named}", "not matching")
    story.cli("owner", "reader").refused(CREATE, "baremetal:allocation:create")


# Ironic's guide, Allocations: "and that can only match nodes where that project is the owner or
# lessee."
def only_nodes_of_the_project_match(story):
    # node-7 is taken, and node-10 is the lessee's: the owner has no other one.
    story.cli("owner", "member").refused(f"{CREATE} --name al2 --wait", "0 of them are free")
    made = story.cli("lessee", "member").json(f"{CREATE} --name al1 --wait")
    assert made["node_uuid"] == story.ten.id, made
    # The site's node is no project's; and how many there are is not told either.
    story.cli("other", "member").refused(f"{CREATE} --wait", "0 machines of class CUSTOM_GOLD")
    story.cli("other", "member").refused(f"{CREATE} --candidate-node node-7", NOT_THERE)
    made = story.site.json(f"{CREATE} --name al1 --wait")
    assert made["node_uuid"] == story.free.id and made["owner"] is None, made


# Ironic's guide, Allocations: "rules that allow non-admins to use allocations effectively". They
# end them, and the node is free for the next one.
def an_allocation_ends_by_its_project(story):
    member = story.cli("owner", "member")
    member.ok("allocation set al1 --extra a=1")
    assert member.json("allocation show al1")["extra"] == {"a": 1}
    member.ok("allocation delete al2")
    member.ok("allocation delete al1")
    member.refused("allocation show al1", NOT_THERE)
    made = member.json(f"{CREATE} --name al3 --wait")
    assert made["node_uuid"] == story.seven.id, made


STORY = (
    an_allocation_is_tied_to_its_project,
    only_nodes_of_the_project_match,
    an_allocation_ends_by_its_project,
)

tell(STORY, Story())
