"""Resends every request of a site's story in other words, through the published client, and expects
the same answer. The story is that of world.py and estate.py; fields come from the contract.

Each request is varied at the moment it is made, when it is valid: a read is sent as it is, every
other one as a trial (/dry-run), which changes nothing.

- A field that is null, empty or zero is as good as absent. Of an optional field the zero of a
  number or bool says something; an empty text that the contract's rules refuse is refused.
- An id, MAC, address or prefix gets the same answer in each accepted spelling, and other spellings
  are refused.
- Every method is tried, but for EXCEPTIONS, and every field with IGNORE_IF_ZERO_VALUE.

Usage: ADMIN_TOKEN=... request_properties.py http://127.0.0.1:PORT
"""

import json
import os
import re
import sys
from collections import Counter

from caller import CONTRACT, Caller
from changes import MOMENTS
from contract import COMBINATIONS
from estate import Estate
from things import as_dict
from variants import (SAYING, empties, has_rules, ignores_zero, is_a_choice, may_refuse_empty,
                      respelled, rules)
from world import Site

READS = {"Get", "GetBMC", "List", "ListBMC", "ListBaseNetworks", "Latest", "Match", "Try", "Issues",
         "Usage", "Capacity", "ConnectedMachines", "InviteGet", "InvitesList", "Queues",
         "TokenScopedList"}
STREAM = "a stream has no trial, and what it gives is gone; published_client.py"
NO_TRIAL = "refused as a trial, as it changes more than the state"
EXCEPTIONS = {
    "infra.BootService/Wait": STREAM, "infra.BMCService/WaitForBMCCommand": STREAM,
    "api.ProjectService/Invite": NO_TRIAL, "api.TenantService/Invite": NO_TRIAL,
    "admin.VPNService/AuthKey": "needs a VPN; vpn.rs",
    "admin.VPNService/ListNodes": "needs a VPN; vpn.rs",
}
# An empty field that is not as good as an absent one, and why.
EMPTY_SAYS = {
    ("infra.BootService/Register", "hardware"): "a machine that reports none is refused otherwise",
    ("infra.BootService/Register", "bios"): "a BIOS that tells nothing of itself",
    ("admin.NetworkService/Update", "default_child_prefix_length"): "children need a length",
    ("api.MachineService/Create", "firewall_spec"): "a machine has no firewall's specification",
    ("admin.TokenService/Create", "token_create_request"): "a token without any right",
}
# Calls of the story that have to be refused: the machine lives.
REFUSED_BY_STORY = {("admin.MachineService/Delete", "failed_precondition"),
                    ("admin.SizeService/Delete", "failed_precondition")}
# Their answers grow with each call: codes alone are compared.
GROWING = {"api.AuditService/List", "admin.AuditService/List"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
SECRETS = {"secret", "password", "consolePassword"}
ATTEMPTS = 3


class Resender:
    """Varies each request ahead of its call, and keeps what is answered otherwise."""

    def __init__(self):
        self.counted, self.failures, self.done = Counter(), [], set()
        self.methods, self.fields, self.ids = set(), set(), set()

    def __call__(self, caller, key, request):
        if key in EXCEPTIONS:
            return
        method = CONTRACT[key][2]
        content = as_dict(request)
        self.ids |= {found.group().lower() for found in ID.finditer(json.dumps(content))}
        is_read = method.name in READS and not key.startswith("infra.")
        send = lambda varied: self.outcome(caller, key, varied, "" if is_read else "/dry-run")
        code, answer = send(content)
        if code != "ok":
            if (key, code) not in REFUSED_BY_STORY:
                self.failures.append(f"{key} {code} before it was made: {answer['message']}")
            return
        self.methods.add(key)
        for field, other, without, varied in empties(method.input_type, content):
            if self.is_new(key, field, other):
                self.compare_empty(key, field, other, send, without, varied)
        for field, spelling, accepted, varied in respelled(method.input_type, content):
            if self.is_new(key, field, len(spelling), spelling.isupper(), accepted):
                self.compare_spelling(key, field, spelling, accepted, send, content, varied)

    def is_new(self, key, field, *variant):
        """Once for each method, field and variant is enough."""
        variant = (key, field.full_name, repr(variant))
        is_new = variant not in self.done
        self.done.add(variant)
        return is_new

    def outcome(self, caller, key, content, prefix):
        code, answer = caller.post(key, content, prefix)
        return code, None if key in GROWING else self.comparable(answer)

    def comparable(self, answer):
        """An answer without times, secrets and ids that are made for each call."""
        if isinstance(answer, dict):
            # An optional text that is empty is shown as such.
            return {name: self.comparable(value) for name, value in answer.items()
                    if name not in SECRETS and value != ""}
        if isinstance(answer, list):
            return [self.comparable(value) for value in answer]
        if isinstance(answer, str):
            answer = TIME.sub("TIME", answer)
            return ID.sub(lambda found: found.group() if found.group() in self.ids else "ID",
                          answer)
        return answer

    def same(self, send, left, right):
        """Two requests' outcomes; once more if they differ, as agents change things meanwhile."""
        for _ in range(ATTEMPTS):
            first, second = send(left), send(right)
            if first == second:
                break
        return first, second

    def compare_empty(self, key, field, other, send, without, varied):
        absent, empty = self.same(send, without, varied)
        explicit = other is not None and field.has_presence
        self.fields.add(field)
        self.counted["null or empty fields"] += 1
        if absent == empty:
            return
        if explicit and (
                # Zero of an optional number says something, and so does a text of an update.
                field.type in SAYING and empty[0] in ("ok", "invalid_argument", "not_found")
                or may_refuse_empty(field) and empty[0] == "invalid_argument"
                # A field that has to be there may be zero.
                or rules(field).required and absent[0] == "invalid_argument"
                or key.endswith("/Update") and absent[0] == empty[0] == "ok"
                or (key, field.name) in EMPTY_SAYS):
            self.counted["empty fields that say something or are refused"] += 1
            return
        self.failures.append(f"{key} {field.full_name}={other!r}: {empty}, absent {absent}"[:700])

    def compare_spelling(self, key, field, spelling, accepted, send, content, varied):
        canonical, other = self.same(send, content, varied)
        kind = "accepted" if accepted else "refused"
        self.counted[f"spellings {kind}"] += 1
        fits = canonical == other if accepted else (
            other[0] == "invalid_argument" or not has_rules(field) and canonical == other)
        if not fits:
            self.failures.append(
                f"{key} {field.full_name}={spelling} ({kind}): {other}, not {canonical}"[:700])


def fields_of_requests():
    """The fields of all requests of the contract, but the choices of a oneof."""
    found, seen = set(), set()

    def walk(message):
        name = message.full_name
        if name in seen or name in MOMENTS or message.GetOptions().map_entry:
            return
        seen.add(name)
        for field in message.fields:
            if not is_a_choice(field):
                found.add(field)
            if field.message_type:
                walk(field.message_type)

    for key in set(CONTRACT) - set(EXCEPTIONS):
        walk(CONTRACT[key][2].input_type)
    return found


def main():
    resend = Resender()
    admin = Caller(sys.argv[1], COMBINATIONS[0][1], os.environ["ADMIN_TOKEN"], set(), resend)
    Site("walk", 2, admin).live()
    Estate("props", 1, admin).build()
    untried = set(CONTRACT) - resend.methods
    if untried != set(EXCEPTIONS):
        resend.failures.append(f"not tried, or no exception: {sorted(untried ^ set(EXCEPTIONS))}")
    fields = fields_of_requests()
    ignoring = {field.full_name for field in fields if ignores_zero(field)}
    untried = sorted(field.full_name for field in fields - resend.fields)
    print(f"never in a request of the story: {' '.join(untried)}")
    if ignoring & set(untried):
        resend.failures.append(f"not tried empty: {ignoring & set(untried)}")
    for broken in resend.failures:
        print(broken)
    counts = ", ".join(f"{count} {name}" for name, count in resend.counted.items())
    print(f"{len(resend.methods)} methods of {len(CONTRACT)}, {counts}, "
          f"{len(resend.fields)} fields of {len(fields)}, "
          f"{len(ignoring)} fields that ignore zero")
    sys.exit(1 if resend.failures else 0)


main()
