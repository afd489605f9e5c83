"""Metal3's HostClaim proposal (CC BY 3.0), user story "Deployment of Simple Workloads", the user's
point of view: each step has the sentence that it proves.
Usage: METALMESH=... METALMESH_API=... ADMIN_TOKEN=... hostclaim_workload.py
"""

import base64

from ironic_calls import wait_until
from ironic_world import IMAGE
from pool_site import PoolSite, condition
from story import tell

CLAIM = "my-host"
# The resources of the story, in the words of this API.
WAITING = """
poweredOn: false
selector:
  matchLabels: {infra-kind: medium}
"""
STARTED = """
poweredOn: true
image: %s
networks: [{network: %s}]
userData: %s
selector:
  matchLabels: {infra-kind: medium}
"""
STOPPED = STARTED.replace("poweredOn: true", "poweredOn: false")


class Story(PoolSite):
    """The site of the story: a large server in the pool, and a medium one that comes later."""

    def __init__(self):
        super().__init__("alpha", "beta")
        self.alpha, self.beta = self.users["alpha"], self.users["beta"]
        self.pool()
        self.large = self.host(1, ["infra-kind=large", "shelf=8"])
        self.medium = None
        self.user_data = ""

    def spec(self, text):
        return text % (IMAGE, self.alpha.network, self.user_data)


# HostClaim proposal, Deployment of Simple Workloads: "However, as a regular user, I am not allowed
# to directly access the definitions of the servers. All servers are labeled with an `infra-kind`
# label whose value depends on the characteristics of the computer."
def the_servers_are_the_operators(story):
    user, server = story.alpha.shell, story.large.id
    assert story.host_of(story.large)["labels"]["infra-kind"] == "large"
    user.refused("pool host ls", "MM-1102")
    user.refused(f"pool host set {server} --pool shared", "MM-1102")
    user.refused(f"machine show {server}", "MM-1001")
    assert user.json("machine ls") == []


# HostClaim proposal, Deployment of Simple Workloads: "As a user I would like to execute a workload
# on an arbitrary server. [...] I create a resource with the following content: [...] online: false
# [...] hostSelector: matchLabels: infra-kind: medium"
def a_claim_asks_for_a_kind_of_server(story):
    made = story.alpha.create(CLAIM, WAITING)
    assert made["status"]["state"] == "pending", made
    # No server of another kind will do, and it says so.
    assert made["status"]["pendingReason"] == "NoMatch", made
    assert not condition(made["status"], "Associated")["status"]
    assert story.host_of(story.large)["state"] == "free"


# HostClaim proposal, Deployment of Simple Workloads: "After a while, the system associates the
# claim with a real server, and the resource's status is populated with the following information:
# [...] bootMACAddress [...] conditions: [...] AssociateBMH [...] nics"
def the_system_associates_a_real_server(story):
    story.medium = story.host(2, ["infra-kind=medium", "shelf=7"])
    status = story.alpha.becomes(CLAIM, "bound")
    assert condition(status, "Associated")["status"], status
    assert condition(status, "Associated")["lastTransition"], status
    host = status["host"]
    (card,) = host["nics"]
    assert card["mac"] == story.medium.macs[0], host
    assert host["size"] == "small" and host["cores"] == 2 and host["disks"], host
    # Its name for a cluster's node, and nothing that leads to the machine.
    assert status["providerId"].startswith("metalmesh://lab/"), status
    assert story.medium.id not in str(story.alpha.claim(CLAIM))


# HostClaim proposal, Deployment of Simple Workloads: "I also examine the annotations and labels of
# the HostClaim resource. They have been enriched with information from the BareMetalHost resource."
# And of its transfer of metadata: "we can delete them when they disappear on the BareMetalHost."
def labels_of_the_server_are_in_the_status(story):
    server = story.medium.id
    assert story.alpha.status(CLAIM)["host"]["labels"] == {"infra-kind": "medium"}
    story.operator.ok(f"pool host set {server} --label infra-kind=medium --label infra-zone=b")
    shown = {"infra-kind": "medium", "infra-zone": "b"}
    assert story.alpha.status(CLAIM)["host"]["labels"] == shown
    story.operator.ok(f"pool host set {server} --label infra-kind=medium --label shelf=7")
    assert story.alpha.status(CLAIM)["host"]["labels"] == {"infra-kind": "medium"}


# HostClaim proposal, Deployment of Simple Workloads: "I use the information from the status and
# meta data to customize the scripts they contain. I modify the HostClaim to point to those secrets
# and start the server: [...] online: true image: [...] userData"
def scripts_are_made_of_the_status_and_the_server_is_started(story):
    (card,) = story.alpha.status(CLAIM)["host"]["nics"]
    script = f"#cloud-config\nhostname: {CLAIM}\nruncmd: [[start, '{card['mac']}']]\n"
    story.user_data = base64.b64encode(script.encode()).decode()
    made = story.alpha.update(CLAIM, story.spec(STARTED))
    assert made["status"]["state"] == "provisioning", made
    # It is never read back; its digest says which one it is.
    assert "userData" not in made["spec"] and len(made["status"]["userDataSha256"]) == 64, made
    # It is for the installer of that server, and for no other.
    given = wait_until(lambda: story.medium.allocation, "the installer gets its orders")
    assert given["userdata"] == story.user_data, given
    assert given["hostname"] == CLAIM and given["image"]["id"] == IMAGE, given
    assert story.large.allocation is None


# HostClaim proposal, Deployment of Simple Workloads: "The workload is launched. When the machine is
# fully provisioned, the boolean field ready in the status becomes true."
def the_workload_is_launched(story):
    story.alpha.installed(CLAIM)
    status = story.alpha.status(CLAIM)
    assert status["state"] == "active" and status["epoch"] == "1", status
    addresses = {one["type"]: one["address"] for one in status["addresses"]}
    assert addresses["InternalIP"].startswith("10.1.") and addresses["Hostname"] == CLAIM, status


# HostClaim proposal, Deployment of Simple Workloads: "I can stop the server by changing the online
# status."
def the_server_is_stopped_and_started(story):
    story.alpha.update(CLAIM, story.spec(STOPPED))
    wait_until(lambda: not story.medium.is_on, "the server is off")
    wait_until(lambda: story.alpha.status(CLAIM).get("power") == "off", "the claim shows it")
    story.alpha.update(CLAIM, story.spec(STARTED))
    wait_until(lambda: story.medium.is_on, "the server is on")
    story.alpha.installed(CLAIM)


# HostClaim proposal, Deployment of Simple Workloads: "I can also perform a reboot by targeting
# specific annotations in the reserved `host.metal3.io` domain."
def the_server_is_rebooted_once(story):
    before = story.medium.orders.count("RESET")
    for _ in range(2):
        story.alpha.shell.ok(f"claim reboot {CLAIM} --request-id first")
    wait_until(lambda: story.alpha.status(CLAIM)["reboots"][0].get("endedAt"), "it is rebooted")
    reboots = story.alpha.status(CLAIM)["reboots"]
    assert len(reboots) == 1 and not reboots[0].get("error"), reboots
    assert story.medium.orders.count("RESET") == before + 1, story.medium.orders


# HostClaim proposal, Deployment of Simple Workloads: "When I destroy the host, the association is
# broken and another user can take over the server."
def another_user_takes_over_the_server(story):
    waiting = story.beta.create(CLAIM, WAITING)["status"]
    assert (waiting["pendingReason"], waiting["matching"]) == ("AllBusy", 1), waiting
    server = story.medium
    # Its hammer boots no sooner than the test wants.
    with server.boots:
        begun = server.begun
        story.alpha.shell.ok(f"claim rm {CLAIM}")
        wait_until(lambda: server.begun > begun, "the server boots to be wiped")
        assert story.alpha.status(CLAIM)["state"] == "releasing"
        assert story.beta.status(CLAIM)["state"] == "pending", "its disks are not wiped yet"
    status = story.beta.becomes(CLAIM, "bound")
    assert status["epoch"] == "2" and status["host"]["nics"][0]["mac"] == server.macs[0], status
    assert not status.get("addresses"), "nothing of the first user is left"
    assert story.alpha.shell.json("claim ls") == []


STORY = (
    the_servers_are_the_operators,
    a_claim_asks_for_a_kind_of_server,
    the_system_associates_a_real_server,
    labels_of_the_server_are_in_the_status,
    scripts_are_made_of_the_status_and_the_server_is_started,
    the_workload_is_launched,
    the_server_is_stopped_and_started,
    the_server_is_rebooted_once,
    another_user_takes_over_the_server,
)

tell(STORY, Story())
