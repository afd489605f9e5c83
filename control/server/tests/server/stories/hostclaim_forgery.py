"""Metal3's HostClaim proposal (CC BY 3.0), "Risks and Mitigations": a malicious tenant says that
it has a server which it has not. Each step has the sentence that it proves.
Usage: METALMESH=... METALMESH_API=... ADMIN_TOKEN=... hostclaim_forgery.py
"""

from ironic_calls import wait_until
from ironic_world import IMAGE
from pool_site import CLAIMS, POOL, PoolSite
from story import tell

RUNNING = "{poweredOn: true, image: %s, networks: [{network: %s}]}"


class Story(PoolSite):
    """The victim has the one server of the pool. The thief knows everything about it that can be
    known: the machine's id, and the claim's.
    """

    def __init__(self):
        super().__init__("victim", "thief")
        self.victim, self.thief = self.users["victim"], self.users["thief"]
        self.pool("[{name: named, projects: [%s]}]" % self.victim.id)
        self.server = self.host(1, ["infra-kind=medium", "shelf=7"])
        spec = RUNNING % (IMAGE, self.victim.network)
        self.theirs = self.victim.create("web", spec)["uuid"]
        self.victim.installed("web")

    def is_unharmed(self):
        """The server is the victim's as before, and runs."""
        host = self.host_of(self.server)
        assert (host["claim"], host["claimProject"]) == (self.theirs, self.victim.id), host
        status = self.victim.status("web")
        assert (status["state"], status["epoch"]) == ("active", "1"), status
        assert self.server.is_on

    def admit(self, *users):
        ids = ", ".join(user.id for user in users)
        self.pool("[{name: named, projects: [%s]}]" % ids)

    def has_none(self, name, reason="AllBusy"):
        """A claim of the thief waits like any other one."""
        status = self.thief.status(name)
        assert status["state"] == "pending" and status["pendingReason"] == reason, status
        assert "host" not in status and status["epoch"] == "0" and not status["providerId"], status
        self.is_unharmed()


# HostClaim proposal, Security Impact of Making BareMetalHost Selection Cluster-wide: "We must make
# sure that the binding is expected from both the owner of BareMetalHost resources and the HostClaim
# resource".
def a_binding_needs_the_word_of_both_owners(story):
    # The operator does not admit the thief: neither is there a pool for it, nor a server.
    answers = []
    for name, pool in (("a", POOL), ("b", "no-such-pool")):
        status = story.thief.create(name, "{pools: [%s]}" % pool)["status"]
        answers.append((status["state"], status["pendingReason"], status["matching"],
                        [(one["type"], one["status"], one["reason"], one["message"])
                         for one in status["conditions"]]))
        story.thief.shell.ok(f"claim rm {name}")
    assert answers[0] == answers[1] and answers[0][:3] == ("pending", "NoPolicy", 0), answers
    # The claim does not select the server: it gets none, admitted or not.
    story.admit(story.victim, story.thief)
    status = story.thief.create("other", "{selector: {matchLabels: {infra-kind: large}}}")["status"]
    assert (status["pendingReason"], status["matching"]) == ("NoMatch", 0), status
    # Nor is it selected by a label that the operator does not show.
    status = story.thief.update("other", "{selector: {matchLabels: {shelf: '7'}}}")["status"]
    assert (status["pendingReason"], status["matching"]) == ("NoMatch", 0), status
    story.thief.shell.ok("claim rm other")


# HostClaim proposal, Tenants Trying to Bypass the Selection Mechanism: "The fact that a HostClaim
# is bound to a specific BareMetalHost will appear as a label in the HostClaim and the HostClaim
# controller will use it to find the associated BareMetalHost. This label could be modified by a
# malicious tenant."
def labels_of_a_claim_say_nothing(story):
    server, theirs = story.server.id, story.theirs
    names = ("baremetalhost", "metal3.io/BareMetalHost", "metalmesh.dev/machine", "machine")
    story.thief.call("Create", name="web", labels=dict.fromkeys(names, server), spec={})
    story.has_none("web")
    for value in (server, f"{POOL}/{server}", theirs):
        for name in names:
            story.thief.call("Update", claim="web", labels={"labels": {name: value}})
            story.has_none("web")
    # The labels of the victim's own claim do not loosen it either.
    story.victim.shell.ok(f"claim update web --label baremetalhost={story.thief.id}")
    story.is_unharmed()


# HostClaim proposal, Tenants Trying to Bypass the Selection Mechanism: "But the BareMetalHost has
# also a consumer reference. The label is only an indication of the binding. If the consumer
# reference is invalid (different from the HostClaim label), the label MUST be erased and the
# HostClaim controller MUST NOT accept the binding."
def a_status_is_nothing_that_a_tenant_writes(story):
    binding = {"machine": story.server.id, "epoch": "1", "pool": POOL, "uuid": story.theirs}
    status = {"state": "bound", "epoch": "1", "pool": POOL, "host": {"labels": {}}}
    for field, value in (("status", status), ("binding", binding), ("uuid", story.theirs),
                         ("machine", story.server.id), ("host", binding)):
        for method, more in (("Create", {"name": "web"}), ("Update", {"claim": "web"})):
            # The contract has no such fields: they are refused, and not left out in silence.
            story.thief.hears("invalid_argument", method, **more, **{field: value})
            story.thief.hears("invalid_argument", method, **more, spec={field: value})
            story.has_none("web")
    # No claim goes on in another one's place.
    for adopted in (story.theirs, story.server.id, "00000000-0000-4000-8000-000000000009"):
        story.thief.hears("not_found", "Create", name="adopted", spec={}, adopt=adopted)
    story.is_unharmed()


# HostClaim proposal, Tenants Trying to Bypass the Selection Mechanism: "[...] the HostClaim
# controller MUST NOT accept the binding." By orders for a server, in the name of a claim that does
# not have it.
def nobody_orders_anything_from_a_server_of_others(story):
    orders = list(story.server.orders)
    for method, more in (("Reboot", {"request": "r", "mode": "hard"}), ("SetHold", {"key": "off"}),
                         ("Delete", {})):
        # The claim of others is not there; the own one is not bound in the epoch of the other one.
        story.thief.hears("not_found", method, claim=story.theirs, **more)
        story.thief.hears("not_found", method, claim=story.theirs, expectedEpoch="1", **more)
        story.thief.hears("aborted", method, claim="web", expectedEpoch="1", **more)
        story.is_unharmed()
    user = story.thief.shell
    for line in (f"machine power {story.server.id} off", f"machine free {story.server.id}"):
        user.refused(line, "MM-1001")
    user.refused(f"pool host rm {story.server.id} --force", "MM-1102")
    user.refused(f"pool host hold {story.server.id}", "MM-1102")
    assert story.server.orders == orders, story.server.orders
    story.is_unharmed()


# HostClaim proposal, Tenants Trying to Bypass the Selection Mechanism: "[...] different from the
# HostClaim label". A name that another claim had before is a name, and inherits nothing.
def a_name_inherits_nothing(story):
    earlier = story.victim.claim("web")
    story.victim.shell.ok("claim rm web")
    story.victim.becomes(story.theirs, "gone")
    # The thief's claim waited for it, and has it rightfully now.
    wait_until(lambda: story.thief.status("web")["state"] == "bound", "the next claim is served")
    again = story.victim.create("web", RUNNING % (IMAGE, story.victim.network))
    assert again["uuid"] != earlier["uuid"] and again["status"]["state"] == "pending", again
    for epoch in ("1", "2"):
        story.victim.hears("aborted", "Reboot", claim="web", request="r", expectedEpoch=epoch)
    host = story.host_of(story.server)
    assert (host["claimProject"], host["epoch"]) == (story.thief.id, "2"), host
    assert not story.thief.status("web").get("addresses"), "nothing of the first tenant is left"


# HostClaim proposal, Tenants Trying to Bypass the Selection Mechanism: "This label could be
# modified by a malicious tenant." Each attempt that changed something, and each refusal, is on
# record.
def attempts_are_on_record(story):
    calls = story.operator.json(f"audit ls --project {story.thief.id} --limit 1000")
    methods = {call["method"].lstrip("/") for call in calls}
    assert {f"{CLAIMS}/Create", f"{CLAIMS}/Update"} <= methods, methods
    assert {call["user"] for call in calls} == {"thief"}, calls


STORY = (
    a_binding_needs_the_word_of_both_owners,
    labels_of_a_claim_say_nothing,
    a_status_is_nothing_that_a_tenant_writes,
    nobody_orders_anything_from_a_server_of_others,
    a_name_inherits_nothing,
    attempts_are_on_record,
)

tell(STORY, Story())
