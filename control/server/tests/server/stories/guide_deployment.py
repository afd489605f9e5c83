"""OpenStack Ironic's guide "Node Multi-Tenancy" (Apache-2.0): deployment by Metalsmith. The server
has the guide's file, word for word (control/oslo/tests/data/guide-metalsmith.yaml), all of it
accepted by `allow_dangerous`. Each step has the sentence that it proves.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... guide_deployment.py
"""

from ironic_cli import Cli, by_token
from ironic_metalsmith import by_password, deployed, freed, run, strangers
from ironic_world import IMAGE_SHA256, IMAGE_URL, World
from story import tell


class Story:
    """A node of project alpha, whose member deploys."""

    def __init__(self):
        self.world = World("alpha", "beta")
        self.machine = self.world.machine("m1", 1)
        site = Cli(by_token(self.world.tokens["admin"]))
        owner = self.world.projects["alpha"].id
        site.ok(f"node set {self.machine.id} --owner {owner} --resource-class gold")
        self.variables = by_password(self.world.projects["alpha"], "member")


# Ironic's guide, Deployment and Metalsmith: "Provisioning a node requires a specific set of APIs to
# be made available. The following policy specifications are enough to allow a node owner to use
# Metalsmith to deploy upon a node".
def an_owner_deploys_with_metalsmith(story):
    deployed(story.world, story.machine, story.variables)
    node = story.machine.node()
    assert node["provision_state"] == "active" and node["instance_info"], node


# Ironic's guide, Deployment and Metalsmith: "allow a node owner": a member of another project
# deploys nothing on the node, and its admin neither, whatever `rule:is_admin` says.
def nobody_else_deploys_on_the_node(story):
    strangers(story.world, story.variables)
    member = by_password(story.world.projects["beta"], "member")
    code, _, err = run(member, "deploy", "--image", IMAGE_URL, "--image-checksum", IMAGE_SHA256,
                       "--resource-class", "gold", "--hostname", "web4")
    assert code, "another project's machine was deployed"
    assert "0 machines of class CUSTOM_GOLD" in err, err
    assert story.machine.node()["provision_state"] == "active"


# Ironic's guide, Deployment and Metalsmith: "baremetal:node:set_provision_state": "rule:is_admin or
# rule:is_node_owner" [...] "baremetal:allocation:delete": "rule:is_admin or
# rule:is_allocation_owner".
def an_owner_gives_the_node_back(story):
    freed(story.world, story.machine, story.variables)
    assert story.machine.node()["instance_info"] == {}


STORY = (
    an_owner_deploys_with_metalsmith,
    nobody_else_deploys_on_the_node,
    an_owner_gives_the_node_back,
)

tell(STORY, Story())
