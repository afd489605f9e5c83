"""Metal3's HostClaim proposal (CC BY 3.0), user story "Deployment of Simple Workloads", the point
of view of the servers' administrator: each step has the sentence that it proves. Namespaces are
projects, and their names are aliases that only administrators give.
Usage: METALMESH=... METALMESH_API=... ADMIN_TOKEN=... hostclaim_servers.py
"""

import json

from pool_site import POOL, POOLS, PoolSite
from story import tell

# The names of the namespaces, by the projects that stand for them here.
NAMESPACES = {"first": "n1", "second": "n2", "third": "p-web"}
WANTED = "{}"


class Story(PoolSite):
    """Three namespaces, and as many servers in the pool."""

    def __init__(self):
        super().__init__(*NAMESPACES)
        for project, alias in NAMESPACES.items():
            self.operator.ok(f"pool project {project} --alias {alias}")
        self.pool()
        self.servers = [self.host(number, []) for number in (1, 2, 3)]

    def served(self):
        """The namespaces whose claims get a server. Each claim is given back at once."""
        found = set()
        for project, user in self.users.items():
            status = user.create("probe", WANTED)["status"]
            if status["state"] == "bound":
                found.add(NAMESPACES[project])
            else:
                # Neither that there are servers, nor how many.
                told = (status["pendingReason"], status["matching"])
                assert told in (("NoPolicy", 0), ("NoMatch", 0)), status
            user.shell.ok("claim rm probe")
        return found

    def narrow(self, server, policies):
        """The policies of one server, which only the API sets."""
        self.world.admin(f"{POOLS}/SetHost", machine=server.id, pool=POOL, only=policies)


# HostClaim proposal, Deployment of Simple Workloads: "As the owner of the bare metal servers, I
# would like to easily control the users that can use my servers."
def nobody_is_admitted_without_a_word(story):
    story.pool("[]")
    assert story.served() == set()
    story.pool()
    assert story.served() == {"n1", "n2", "p-web"}
    for user in story.users.values():
        user.shell.refused("pool set -f -", "MM-1102", f"id: {POOL}\n")


# HostClaim proposal, Deployment of Simple Workloads: "`matches`: the content of this field is a
# regular expression (in Golang re2 syntax). The name of the namespace where the HostClaim is
# located must match this regular expression." And of its security: "`.*` lifts any restriction,
# `n1|n2` allow HostClaims from either `n1` namespace or `n2`, `p-.*` allow HostClaims from
# namespaces begining with prefix `p-`".
def names_are_matched_by_a_regular_expression(story):
    for pattern, expected in (
            (".*", {"n1", "n2", "p-web"}),
            ("n1|n2", {"n1", "n2"}),
            ("p-.*", {"p-web"}),
            # The whole name: a part of it is another name.
            ("n", set()),
            ("web", set())):
        story.pool("[{name: matches, pattern: '%s'}]" % pattern)
        assert story.served() == expected, pattern
    # A broken one is refused when it is written, and the pool stays as it was.
    text = f"id: {POOL}\npolicies: [{{name: broken, pattern: '('}}]\n"
    story.operator.refused("pool set -f -", "pattern", text)
    assert story.operator.json(f"pool show {POOL}")["policies"][0]["pattern"] == "web"


# HostClaim proposal, Deployment of Simple Workloads: "`withLabel`: the content of the field is a
# list of strings representing labels. The namespace of the HostClaim must have a label belonging to
# the list."
def namespaces_are_admitted_by_a_label_of_a_list(story):
    story.pool("[{name: gpu, labels: [{name: gpu}]}, "
               "{name: test, labels: [{name: stage, value: test}]}]")
    assert story.served() == set()
    story.operator.ok("pool project first --alias n1 --label gpu=yes")
    story.operator.ok("pool project second --alias n2 --label stage=test")
    story.operator.ok("pool project third --alias p-web --label stage=production")
    assert story.served() == {"n1", "n2"}
    # It is the operator who gives labels: those that a project gives itself are others.
    third = story.users["third"]
    own = {"replace": {"labels": {"stage": "test", "gpu": "yes"}}}
    lock = {"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"}
    third.api("api.ProjectService/Update", project=third.id, labels=own, updateMeta=lock)
    assert story.served() == {"n1", "n2"}
    third.shell.refused("pool project third --label stage=test", "MM-1102")


# HostClaim proposal, Deployment of Simple Workloads: "The BareMetalHost resource is extended with a
# field `hostClaimNamespaces` with two optional subfields".
def each_server_may_have_its_own_rule(story):
    story.pool()
    story.narrow(story.servers[0], [{"name": "matches", "pattern": "p-.*"}])
    story.narrow(story.servers[1], [{"name": "withLabel", "labels": [{"name": "gpu"}]}])
    story.narrow(story.servers[2], [{"name": "matches", "pattern": "nobody"}])
    wanted = json.dumps({"poweredOn": True})
    for project, server in (("third", story.servers[0]), ("first", story.servers[1])):
        made = story.users[project].create("web", wanted)
        assert story.machine_of(made) is server, made
    # The rest is for nobody: neither free servers nor reasons tell of it.
    status = story.users["second"].create("web", wanted)["status"]
    assert (status["pendingReason"], status["matching"]) == ("NoMatch", 0), status


STORY = (
    nobody_is_admitted_without_a_word,
    names_are_matched_by_a_regular_expression,
    namespaces_are_admitted_by_a_label_of_a_list,
    each_server_may_have_its_own_rule,
)

tell(STORY, Story())
