"""Random requests (seeded): no fault of the server, and a request that is refused changes nothing.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... ironic_random.py [SEED [REQUESTS]]
"""

import json
import random
import sys
import uuid

from ironic_calls import Ironic
from ironic_paths import PATTERNS
from ironic_state import state
from ironic_world import World

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 39
REQUESTS = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
FIELDS = (
    "uuid", "name", "owner", "lessee", "driver", "driver_info", "instance_info", "properties",
    "extra", "resource_class", "traits", "node_uuid", "address", "portgroup_uuid", "public",
    "steps", "target", "reason", "id", "candidate_nodes", "node", "description", "maintenance",
    "retired", "protected", "network_data", "parent_node", "shard", "chassis_uuid", "port",
    "network_id", "fixed_ips", "configdrive", "boot_device", "disable_ramdisk", "auth",
    "instance_uuid", "conductor_group", "power_interface", "allocation_uuid", "pxe_enabled",
    "mode", "local_link_connection", "power_state", "provision_state", "links", "created_at",
)
TEXTS = (
    "", "x", "metalmesh", "active", "available", "manage", "deleted", "power on", "rebooting",
    "CUSTOM_A", "file:///etc/passwd", "../../etc", "%00", "\u0000", "\ud7ff", "None", "null",
    "x" * 300, "x" * 70_000, "52:54:00:00:01:01", "10.0.0.1", "a/b", "a~1b", "\u202e", "'; --",
)


class Source:
    """Random texts, values, paths and requests."""

    def __init__(self, seed, world, machine):
        self.random = random.Random(seed)
        project = world.projects["alpha"]
        self.idents = [machine.id, "kn1", project.id, project.network, str(uuid.UUID(int=7)),
                       "nonsense", "%2e%2e", "%ff", "a" * 300, "CUSTOM_T", "metalmesh",
                       "control-1", "led", "bios_version"]

    def value(self, depth=0):
        draw = self.random.random()
        if draw < 0.35 or depth > 3:
            return self.random.choice([*TEXTS, *self.idents])
        if draw < 0.55:
            return self.random.choice(
                [None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 1.5, 1e308, -0.0])
        if draw < 0.75:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.name(): self.value(depth + 1) for _ in range(self.random.randrange(5))}

    def name(self):
        return self.random.choice([*FIELDS, *TEXTS[:12]])

    def pointer(self):
        parts = [self.name() for _ in range(self.random.randrange(1, 4))]
        return "/" + "/".join(parts)

    def patch(self):
        operations = []
        for _ in range(self.random.randrange(4)):
            operation = {"op": self.random.choice(["add", "replace", "remove", "test", "move"]),
                         "path": self.pointer()}
            if self.random.random() < 0.9:
                operation["value"] = self.value()
            operations.append(operation)
        return operations

    def body(self, verb):
        draw = self.random.random()
        if verb == "PATCH" and draw < 0.8:
            return self.patch()
        if draw < 0.8:
            return {self.name(): self.value() for _ in range(self.random.randrange(6))}
        return self.value()

    def path(self, patterns):
        path = self.random.choice(patterns)
        while "{" in path:
            begin, end = path.index("{"), path.index("}")
            path = path[:begin] + self.random.choice(self.idents) + path[end + 1:]
        if self.random.random() < 0.2:
            names = ["limit", "marker", "fields", "detail", "sort_key", "sort_dir", "owner",
                     "node", "name", "binding:host_id", "type", self.random.choice(FIELDS)]
            values = ["0", "-1", "1", "x", "True", "uuid", "99999999999999999999", "%00", "a,b"]
            pairs = [f"{self.random.choice(names)}={self.random.choice(values)}"
                     for _ in range(self.random.randrange(1, 4))]
            path += "?" + "&".join(pairs)
        return path


def malformed(source):
    """A body that is no JSON."""
    return source.random.choice([b"{", b"[1,", b"\xff\xfe", b'{"a":', b"nul", b'"' + b"x" * 100,
                                 b"[" * 5000, b'{"a":' * 5000])


def main():
    world = World("alpha", "beta")
    machine = world.machine("m1", 1)
    world.site.ok("POST", "/v1/nodes", {"driver": "metalmesh", "name": "kn1",
                                        "owner": world.projects["alpha"].id})
    source = Source(SEED, world, machine)
    # Not the world's own caller, which reads the state in the newest version.
    callers = [Ironic(world.tokens[role]) for role in ("admin", "reader", "member")]
    for project in world.projects.values():
        callers += [project.as_(role) for role in ("admin", "member", "reader", "service")]
    callers.append(Ironic(None))
    statuses, before = {}, state(world.site)
    for number in range(REQUESTS):
        caller, verb = source.random.choice(callers), source.random.choice(VERBS)
        path = source.path(PATTERNS)
        body, raw = source.body(verb), None
        if source.random.random() < 0.05:
            body, raw = None, malformed(source)
        if verb == "GET":
            body = raw = None
        caller.version = source.random.choice(["1.115", "1.80", "1.1", "1.92", "latest"])
        answer = caller.ask(verb, path, body, raw=raw)
        told = f"seed {SEED}, request {number}: {verb} {path} {json.dumps(body)[:1000]}"
        assert answer.status < 500, f"{told}: {answer}"
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        is_refused = answer.status >= 400
        if verb != "GET" and (is_refused and number % 5 == 0 or not is_refused):
            after = state(world.site)
            if is_refused:
                assert after == before, f"{told}: {answer} and yet it changed something"
            before = after
    served = sum(count for status, count in statuses.items() if status < 300)
    print(statuses)
    print(f"{REQUESTS} requests, {served} served")


main()
