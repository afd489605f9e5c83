"""Metal3's HostClaim proposal (CC BY 3.0), user story "Multi-tenancy": each step has the sentence
that it proves. A cluster is a project here, and its controller is the test: one claim for each of
its machines.
Usage: METALMESH=... METALMESH_API=... ADMIN_TOKEN=... hostclaim_tenants.py
"""

import base64

from ironic_calls import wait_until
from ironic_world import IMAGE, LEAF
from pool_site import CLAIMS, PoolSite
from story import tell

# The template of a cluster's machines.
MACHINE = """
poweredOn: true
image: %s
networks: [{network: %s}]
userData: %s
selector:
  matchLabels: {infra-kind: worker}
"""
UNKNOWN = "00000000-0000-4000-8000-000000000009"


def user_data(name):
    return base64.b64encode(f"#cloud-config\nhostname: {name}\n".encode()).decode()


class Story(PoolSite):
    """Two clusters and two servers, each in a pool of its own."""

    def __init__(self):
        super().__init__("blue", "green")
        self.blue, self.green = self.users["blue"], self.users["green"]
        self.servers = []

    def start(self, user, name):
        """A machine of a cluster."""
        return user.create(name, MACHINE % (IMAGE, user.network, user_data(name)))


# HostClaim proposal, Multi-tenancy: "As an infrastructure administrator I would like to host
# several isolated clusters. All the servers in the data-center are registered as BareMetalHost in
# one or several namespaces under the control of the infrastructure manager. Namespaces are created
# for each tenant of the infrastructure."
def servers_are_the_infrastructures_and_namespaces_the_tenants(story):
    for number, pool in ((1, "rack-a"), (2, "rack-b")):
        story.pool(name=pool)
        story.servers.append(story.host(number, ["infra-kind=worker", "asset=4711"], pool))
    assert len(story.operator.json("pool host ls")) == 2
    for user in (story.blue, story.green):
        assert user.shell.json("machine ls") == []
        user.shell.refused("pool ls", "MM-1102")


# HostClaim proposal, Multi-tenancy: "When the cluster is started, a HostClaim is created for each
# Metal3Machine associated to the cluster. [...] it is used to choose the BareMetalHost associated
# with the cluster, but he associated BareMetalHost is not in the same namespace as the HostClaim."
def clusters_get_servers_that_are_not_theirs(story):
    made = [story.start(user, "worker-1") for user in (story.blue, story.green)]
    servers = {story.machine_of(claim).id for claim in made}
    assert servers == {server.id for server in story.servers}
    for user in (story.blue, story.green):
        user.installed("worker-1")
    for server in story.servers:
        # A host is nobody's, and no project's machine.
        for user in (story.blue, story.green):
            user.shell.refused(f"machine show {server.id}", "MM-1001")
            user.shell.refused(f"machine bmc {server.id}", "MM-1001")


# HostClaim proposal, Multi-tenancy: "The exact definition of the BareMetalHost remains hidden from
# the cluster user, only parts of its status and metadata are copied back to the HostClaim
# resource."
def the_definition_of_a_server_stays_hidden(story):
    for user in (story.blue, story.green):
        (listed,) = user.shell.json("claim ls")
        shown = user.claim("worker-1")
        assert listed == shown
        assert shown["status"]["host"]["labels"] == {"infra-kind": "worker"}, shown
        read = [shown, user.shell.ok("ip ls -o json"), user.shell.ok("get claim -o yaml"),
                user.call("Get", claim="worker-1"), user.call("List")]
        for text in map(str, read):
            for server in story.servers:
                for secret in (server.id, server.bmc()["address"], server.bmc()["mac"]):
                    assert secret not in text, f"{secret} is told: {text}"
            for secret in ("asset", "4711", "rack-1", LEAF, "Eth1/", "from-hammer"):
                assert secret not in text, f"{secret} is told: {text}"


# HostClaim proposal, Multi-tenancy: "With this information, the data template controller has enough
# details to compute the different secrets [...]. Those secrets are linked to the HostClaim and,
# ultimately, to the BareMetalHost."
def data_reaches_the_server_of_its_claim_alone(story):
    for user in (story.blue, story.green):
        server = story.machine_of(user.claim("worker-1"))
        given = server.allocation
        assert given["project"] == user.id and given["userdata"] == user_data("worker-1"), given
        (network,) = given["networks"]
        assert network["network"] == user.network, given
        (own,) = [one["address"] for one in user.status("worker-1")["addresses"]
                  if one["type"] == "InternalIP"]
        assert network["ips"] == [own], given
        (card,) = user.status("worker-1")["host"]["nics"]
        assert [card["mac"]] == server.macs


# HostClaim proposal, Goals: "Split responsibilities between infrastructure teams, who manage
# servers, and cluster administrators, who create/update/scale baremetal clusters deployed on those
# servers [...] to ensure isolation."
def a_claim_of_another_tenant_looks_like_none(story):
    foreign = story.green.claim("worker-1")["uuid"]
    for method, more in (("Get", {}), ("Update", {"spec": {}}), ("Delete", {}),
                         ("Reboot", {"request": "r"}), ("SetHold", {"key": "k"}),
                         ("ClearHold", {"key": "k"})):
        answers = {
            story.blue.hears("not_found", method, claim=claim, **more).replace(claim, "CLAIM")
            for claim in (foreign, UNKNOWN)}
        assert len(answers) == 1, answers
    # In the other project's name its own token says nothing.
    refused = story.blue.shell.run(f"claim ls --project {story.green.id}")
    assert refused.returncode, refused.stdout
    assert story.green.status("worker-1")["state"] == "active"


# HostClaim proposal, Multi-tenancy: "When the cluster is modified, new Machine and Metal3Machine
# resources replace the previous ones. The HostClaims follow the life-cycle of the Metal3Machines
# and are destroyed with them."
def a_cluster_is_rolled_over(story):
    server = story.machine_of(story.blue.claim("worker-1"))
    waiting = story.start(story.blue, "worker-2")["status"]
    assert (waiting["state"], waiting["pendingReason"]) == ("pending", "AllBusy"), waiting
    story.blue.shell.ok("claim rm worker-1")
    story.blue.installed("worker-2")
    assert story.machine_of(story.blue.claim("worker-2")) is server
    assert server.allocation["hostname"] == "worker-2", server.allocation
    assert [row["name"] for row in story.blue.shell.json("claim ls")] == ["worker-2"]


# HostClaim proposal, Multi-tenancy: "The BareMetalHosts are recycled and are bound to new
# HostClaims, potentially belonging to other clusters."
def a_server_goes_to_another_cluster(story):
    server = story.machine_of(story.blue.claim("worker-2"))
    boots = server.begun
    story.start(story.green, "worker-2")
    story.blue.shell.ok("claim rm worker-2")
    wait_until(lambda: story.green.status("worker-2")["state"] != "pending", "it is green's turn")
    assert server.begun > boots, "it was wiped in between"
    story.green.installed("worker-2")
    assert story.machine_of(story.green.claim("worker-2")) is server
    # The first cluster has nothing of it left: neither an address nor an order.
    assert story.blue.shell.json("ip ls") == []
    assert story.blue.shell.json("claim ls") == []
    resets = server.orders.count("RESET")
    for method, more in (("Reboot", {"request": "late"}), ("SetHold", {"key": "late"})):
        story.blue.hears("not_found", method, claim="worker-2", **more)
    assert server.orders.count("RESET") == resets and server.is_on
    calls = story.operator.json("audit ls --project " + story.blue.id)
    assert any(f"{CLAIMS}/Delete" in call["method"] for call in calls), calls


STORY = (
    servers_are_the_infrastructures_and_namespaces_the_tenants,
    clusters_get_servers_that_are_not_theirs,
    the_definition_of_a_server_stays_hidden,
    data_reaches_the_server_of_its_claim_alone,
    a_claim_of_another_tenant_looks_like_none,
    a_cluster_is_rolled_over,
    a_server_goes_to_another_cluster,
)

tell(STORY, Story())
