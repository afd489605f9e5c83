"""Every path with every verb, and every documented request with mistakes in it (seeded): no fault of
the server, each refusal in the shape that clients read, and no change by a request that is refused.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... ironic_mutants.py [SEED [REQUESTS]]
"""

import json
import random
import sys

from ironic_calls import Ironic
from ironic_mistakes import Mistakes
from ironic_paths import PATTERNS
from ironic_shapes import OF_NODES, Fixtures, Shape, odd_idents
from ironic_state import LISTS, difference, read
from ironic_world import World

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 24
# Documented requests with mistakes; those of each path and verb come besides.
REQUESTS = int(sys.argv[2]) if len(sys.argv) > 2 else 700
VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Requests after which missing objects are made anew.
REFRESH_EVERY = 40


def check_refusal(answer, path):
    """Nothing if a refusal has the shape of the API that its path belongs to; else the reason."""
    if answer.status == 413:
        # The listener's own, before any API reads the request: strangers may send less than others.
        return None
    if answer.headers.get("Content-Type") != "application/json":
        return "it is not JSON"
    body = answer.json
    if not isinstance(body, dict):
        return "it is no object"
    below = path.partition("?")[0]
    if answer.status == 401 or is_in(below, "/v3"):
        error = body.get("error", {})
        is_right = error.get("code") == answer.status and error.get("message")
    elif is_in(below, "/v2.0"):
        error = body.get("NeutronError", {})
        is_right = error.get("message") and "type" in error and "detail" in error
    else:
        # Ironic has a JSON text within JSON.
        try:
            error = json.loads(body["error_message"])
        except (KeyError, TypeError, ValueError):
            return "it has no error_message"
        is_right = error.get("faultstring") and error.get("faultcode") == "Client"
    if not is_right or len(body) != 1:
        return "it has another shape"
    return None if answer.headers.get("openstack-request-id") else "it has no request id"


def is_in(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


class Trial:
    """Sends requests, and judges the answers."""

    def __init__(self, world, machine):
        self.world = world
        self.random = random.Random(SEED)
        self.fixtures = Fixtures(world, machine)
        self.callers = [Ironic(world.tokens[role]) for role in ("reader", "member", "service")]
        for project in world.projects.values():
            self.callers += [project.as_(role) for role in ("admin", "member", "reader")]
        self.callers.append(Ironic(None))
        # Most requests are an administrator's: rights are not what they are to be refused for.
        self.callers += [Ironic(world.tokens["admin"])] * (2 * len(self.callers))
        self.statuses, self.sent, self.compared = {}, 0, 0

    def mistakes(self):
        return Mistakes(self.random, odd_idents(self.fixtures))

    def send(self, verb, path, content, lists):
        """Sends a request, and holds its answer, and what it changed, against the rules."""
        caller = self.random.choice(self.callers)
        headers = self.mistakes().headers()
        before = None if verb == "GET" else read(self.world.site, *lists)
        told = f"seed {SEED}, request {self.sent}: {verb} {path} {headers} {content!r:.1500}"
        answer = caller.ask(verb, path, headers=headers, raw=content)
        self.sent += 1
        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        assert answer.status < 500, f"{told}: {answer}"
        if answer.status >= 400:
            wrong = check_refusal(answer, path)
            assert wrong is None, f"{told}: {wrong}: {answer}"
            if before is not None:
                changed = difference(before, read(self.world.site, *lists))
                assert changed is None, f"{told}: {answer} and yet {changed}"
                self.compared += 1
        if self.sent % REFRESH_EVERY == 0:
            self.fixtures.refresh()

    def every_path(self):
        """Each path with each verb, once with the body of some request and once with none."""
        for pattern in PATTERNS:
            lists = lists_of(pattern)
            for verb in VERBS:
                mistakes = self.mistakes()
                shape = self.random.choice(self.fixtures.shapes())
                content = None if verb == "GET" else mistakes.content(shape.body)
                self.send(verb, mistakes.path(pattern), content, lists)
                self.send(verb, mistakes.path(pattern), None, lists)

    def every_shape(self, requests):
        """Documented requests, each as often as any other."""
        while self.sent < requests:
            shapes = self.fixtures.shapes()
            self.random.shuffle(shapes)
            for shape in shapes[:REFRESH_EVERY]:
                mistakes = self.mistakes()
                path = shape.path
                if "?" not in path:
                    path += mistakes.query()
                self.send(shape.verb, path, mistakes.content(shape.body), shape.lists)


def lists_of(pattern):
    """The lists that show what requests of a path could change."""
    if is_in(pattern, "/v2.0"):
        return "network ports", "nodes"
    part = pattern.removeprefix("/v1/").partition("/")[0]
    return (part, "nodes") if part in LISTS and part not in OF_NODES else OF_NODES


def main():
    world = World("alpha", "beta")
    trial = Trial(world, world.machine("m1", 1))
    trial.every_path()
    trial.every_shape(trial.sent + REQUESTS)
    served = sum(count for status, count in trial.statuses.items() if status < 300)
    print(trial.statuses)
    print(f"{trial.sent} mutants, {served} served, {trial.compared} compared")


main()
