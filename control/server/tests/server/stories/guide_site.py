"""Two machines of an owner, one of them leased, and the command line of each project and role, for
the stories of Ironic's guide to multi-tenancy.
"""

from ironic_cli import Cli, by_token
from ironic_world import World

NOT_THERE = "could not be found"


class GuideSite:
    """`node-7` is the owner's, and `node-10` is leased to the lessee."""

    def __init__(self):
        self.world = World("owner", "lessee", "other")
        self.seven, self.ten = self.world.machine("m7", 1), self.world.machine("m10", 2)
        self.site = Cli(by_token(self.world.tokens["admin"]))
        self.site.ok(f"node set {self.seven.id} --name node-7")
        self.site.ok(f"node set {self.ten.id} --name node-10")

    def lease(self):
        """The owner and the lessee of the nodes, by the words of the guide."""
        owner, lessee = self.plain("owner"), self.plain("lessee")
        self.site.ok(f"node set --owner {owner} node-7")
        self.site.ok(f"node set --owner {owner} node-10")
        self.site.ok(f"node set --lessee {lessee} node-10")

    def project(self, name):
        return self.world.projects[name]

    def plain(self, name):
        """The id of a project as OpenStack writes it."""
        return self.project(name).id.replace("-", "")

    def cli(self, project, role):
        """The command line of a project's token with this role and those that it includes."""
        return Cli(by_token(self.project(project).tokens[role]))

    def names(self, project, role):
        """The names of the nodes that a project lists."""
        return {row["name"] for row in self.cli(project, role).json("node list")}
