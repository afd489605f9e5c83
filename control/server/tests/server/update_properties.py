"""Holds every update of the published contract against rules that hold for all of them, through
the published client. Objects come from things.py, fields and their values from the contract.

- An object that was read and is written back changes nothing: all fields, each field alone, and no
  field. Generation and time of the last update stay as they are.
- An update of a field changes that field alone, in the answer and in the next read, and makes the
  next generation; or it is refused and changes nothing.
- Administrators' objects are not updated by others.

Usage: ADMIN_TOKEN=... update_properties.py http://127.0.0.1:PORT
"""

import copy
import datetime
import os
import sys
from collections import Counter

from connectrpc.code import Code
from connectrpc.errors import ConnectError

from caller import Caller
from changes import others
from contract import COMBINATIONS
from estate import Estate
from things import labels_of, others_are_refused, things

REFUSED = {Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.PERMISSION_DENIED,
           Code.ALREADY_EXISTS, Code.NOT_FOUND}
# A field that is refused for every other value that the contract's types allow, and why.
ALWAYS_REFUSED = {
    ("admin.SwitchService/Update", "nics"): "the agent of the switch tells them",
    ("admin.SwitchService/Update", "os"): "the agent of the switch tells it",
    ("api.MachineService/Update", "ssh_public_keys"): "both machines are installed",
}
# Lists without an order of their own.
SETS = {"features"}
counted = Counter()
failures = []


def check(rule, *of):
    """All that is broken is told, not only the first."""
    try:
        rule(*of)
    except (AssertionError, ConnectError) as error:
        notes = " ".join(getattr(error, "__notes__", []))
        failures.append(f"{rule.__name__}: {error} {notes}")


def attempt(act):
    """The answer of a call, or the code of its refusal; any other code is a failure."""
    try:
        return act(), None
    except ConnectError as error:
        assert error.code in REFUSED, f"{error.code}: {error} {error.__notes__}"
        return None, error.code


def differences(left, right, path=""):
    """The fields in which two objects differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        return [found for name in sorted({*left, *right})
                for found in differences(left.get(name), right.get(name), f"{path}.{name}")]
    return [] if left == right else [f"{path[1:]}: {left} became {right}"]


def unchanged_is_a_no_op(thing, part):
    before = thing.read()
    for kind, after in (("answer", thing.update(part)), ("read", thing.read())):
        changed = differences(before, after)
        assert not changed, f"{thing} {sorted(part)} {kind}: {changed}"
    counted["updates that change nothing"] += 1


def settled(thing, whole):
    """An object without what follows from every change, and with sets in one order."""
    whole = copy.deepcopy(whole)
    whole.pop("consumption", None)
    for changed in (whole, thing.content(whole)):
        for name in ("updated_at", "generation"):
            changed.get("meta", {}).pop(name, None)
        for name in SETS & set(changed):
            changed[name].sort()
        # JSON leaves out an empty text, but for an optional field.
        for name in [name for name, value in changed.items() if value == ""]:
            del changed[name]
    return whole


def version(thing, whole):
    """An object's generation and the time of its last update."""
    meta = thing.content(whole).get("meta", {})
    # As texts a whole second would be later than its parts.
    updated_at = datetime.datetime.fromisoformat(meta.get("updated_at", "1970-01-01T00:00:00Z"))
    return int(meta.get("generation", 0)), updated_at


def change_is_what_it_says(thing, name, other):
    """Sends a change; `True` if the server made it."""
    before = thing.read()
    answer, code = attempt(lambda: thing.update({name: thing.to_send(name, other)}))
    after = thing.read()
    if code:
        changed = differences(before, after)
        assert not changed, f"{thing} {name}={other} was refused with {code}, but {changed}"
        counted["changes refused"] += 1
        return False
    wanted = settled(thing, before)
    thing.content(wanted)[name] = other
    labels_of(thing.content(wanted)).update(thing.follows(name, other))
    wanted = settled(thing, wanted)
    for kind, found in (("answer", answer), ("read", after)):
        changed = differences(wanted, settled(thing, found))
        assert not changed, f"{thing} {name}={other} {kind}: {changed}"
    (old, earlier), (new, later) = version(thing, before), version(thing, after)
    assert (new, earlier < later) == (old + 1, True), f"{thing} {name}={other}: {before} {after}"
    counted["changes made"] += 1
    return True


def each_change(thing, name):
    """Each other value of a field, from the present one; at least one is taken."""
    field, taken = thing.fields[name], False
    value = thing.content(thing.read()).get(name)
    for other in filter(lambda other: thing.can_send(name, other), others(field, value)):
        if thing.content(thing.read()).get(name) == other:
            # An empty list could not be put back.
            continue
        made = False
        try:
            made = change_is_what_it_says(thing, name, other)
        except (AssertionError, ConnectError) as error:
            failures.append(f"change_is_what_it_says: {error}")
            made = True
        if made and value is not None:
            attempt(lambda: thing.update({name: thing.to_send(name, value)}))
        taken = taken or made
    return taken


def labels_are_replaced_and_patched(thing):
    before = thing.content(thing.read())
    labels, kept = labels_of(before), thing.follows("url", before.get("url"))
    for change, wanted in (
            ({"patch": {"update": {"labels": {"a": "b"}}}}, {**labels, "a": "b"}),
            ({"patch": {"remove": ["a"]}}, labels),
            ({"replace": {"labels": {"c": "d"}}}, {"c": "d", **kept}),
            ({"replace": {"labels": labels}}, labels)):
        for found in (thing.update({"labels": change}), thing.read()):
            assert labels_of(thing.content(found)) == wanted, f"{thing} {change}: {found}"
        counted["changes made"] += 1


def update_one(thing, taken):
    fields = thing.written_back()
    for part in (fields, *({name: value} for name, value in fields.items()), {}):
        check(unchanged_is_a_no_op, thing, part)
    for name in thing.fields:
        if name != "labels" and each_change(thing, name):
            taken.add((thing.update_key, name))
    if "labels" in thing.fields:
        check(labels_are_replaced_and_patched, thing)
        taken.add((thing.update_key, "labels"))


def main():
    options = COMBINATIONS[0][1]
    site = Estate("props", 1, Caller(sys.argv[1], options, os.environ["ADMIN_TOKEN"], set()))
    site.build()
    counted["kinds refused to owners"] = others_are_refused(site)
    taken, wanted = set(), set()
    for thing in things(site):
        update_one(thing, taken)
        counted["objects"] += 1
        wanted |= {(thing.update_key, name) for name in thing.fields}
    counted["fields"] = len(wanted)
    if wanted - taken != set(ALWAYS_REFUSED):
        failures.append(f"refused for every value, or no longer: "
                        f"{sorted((wanted - taken) ^ set(ALWAYS_REFUSED))}")
    for broken in failures:
        print(broken)
    print(", ".join(f"{count} {name}" for name, count in counted.items()))
    sys.exit(1 if failures else 0)


main()
