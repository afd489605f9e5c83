"""Holds every query of the published contract against a plain filter over what Get answers, through
the published client. Methods, fields and types come from the contract; what a field is compared
with stands in filters.py.

- An entry of a list is what Get answers.
- A query finds exactly what a plain filter finds: for each value that any object has, and for one
  that none has; a list of values finds what has all of them.
- An id or address finds the same in each accepted spelling.
- A choice that is unspecified, and an empty list or message, filter nothing; an empty text filters
  nothing, or finds what has none, or is refused.
- Every field of every query is tried, or named in filters.EXCEPTIONS.

Usage: ADMIN_TOKEN=... list_properties.py http://127.0.0.1:PORT
"""

import datetime
import itertools
import os
import sys
import uuid as uuids
from collections import Counter

from buf.validate import validate_pb2
from connectrpc.code import Code
from connectrpc.errors import ConnectError

from caller import CONTRACT, Caller
from changes import is_about
from contract import COMBINATIONS
from estate import Estate
from filters import EXCEPTIONS, Filters, labels_of
from list_rules import RULES
from lists import ELSEWHERE, OWN_SENSE, PLAIN, UNFILTERED, fields_of, lists, nested
from spellings import UUID, accepted
from things import as_dict

# A part of a field's name, and a value of its form that no object has.
ABSENT = [("mac", "02:ff:ff:ff:ff:ff"), ("prefix", "198.51.100.0/24"), ("ip", "203.0.113.99"),
          ("address", "203.0.113.99"), ("url", "http://nowhere.example/")]
VALUES_MAX = 6
counted, failures, tried = Counter(), [], set()


def check(rule, *of):
    """All that is broken is told, not only the first."""
    try:
        rule(*of)
    except (AssertionError, ConnectError, KeyError) as error:
        notes = " ".join(getattr(error, "__notes__", []))
        failures.append(f"{rule.__name__}: {error!r} {notes}")


def is_uuid(field):
    return field.GetOptions().Extensions[validate_pb2.field].string.uuid


def absent(field, present):
    """A value of a field that no object has, or none where each is one of an object's."""
    if field.enum_type:
        names = (choice.name for choice in field.enum_type.values if choice.number)
        return next((name for name in names if name not in present), None)
    if field.type == field.TYPE_STRING:
        if is_uuid(field):
            return str(uuids.uuid4())
        return next((value for part, value in ABSENT if is_about(field, part)), "nobody-has-this")
    if field.type == field.TYPE_BOOL:
        return None
    return "424242" if field.type in (field.TYPE_UINT64, field.TYPE_INT64) else 424242


def is_labels(field):
    return bool(field.message_type and field.message_type.name == "Labels")


def queries(field, values):
    """Pairs of a query's value and of those that an object needs to have."""
    if is_labels(field):
        pairs = sorted({pair for labels in values for pair in labels.items()})
        sought = [dict([pair]) for pair in pairs] + [{name: "other"} for name, _ in pairs[:2]]
        sought += [labels for labels in values if len(labels) > 1] + [{"nobody": "has this"}]
        return [({"labels": labels}, labels) for labels in sought]
    single = sorted({value for own in values for value in own}, key=str)[:VALUES_MAX]
    other = absent(field, set(single))
    if field.is_repeated:
        lists = [[value] for value in [*single, *([other] if other else [])]]
        lists += [list(pair) for pair in itertools.combinations(single[:4], 2)]
        lists += [[single[0], other]] if single and other else []
        return [(wanted, wanted) for wanted in lists]
    return [(value, [value]) for value in [*single, *([other] if other is not None else [])]]


def has_all(own, wanted):
    if isinstance(wanted, dict):
        return all(own.get(name) == value for name, value in wanted.items())
    return all(value in own for value in wanted)


def filter_agrees(listed, filters, objects, leaf):
    path, way, field = leaf
    read = labels_of if path.endswith("Query.labels") else lambda item: filters.values(path, item)
    own = {name: read(item) for name, item in objects.items()}
    found_some, found_none = False, False
    for value, wanted in queries(field, list(own.values())):
        expected = sorted(name for name in objects if has_all(own[name], wanted))
        for spelled in [value, *respelled(field, value)]:
            found = listed.names(nested(way, spelled))
            assert found == expected, (
                f"{listed} {path}={spelled}: found {found}, not {expected}")
            counted["filters"] += 1
        found_some, found_none = found_some or bool(expected), found_none or not expected
    tried.update({(path, True)} if found_some else set())
    # Nothing is left to look for where every choice is one of an object's.
    every_choice = field.enum_type or field.type == field.TYPE_BOOL
    tried.update({(path, False)} if found_none or every_choice else set())


def respelled(field, value):
    """A query's value with ids and addresses in other spellings."""
    if isinstance(value, list):
        return [[other, *value[1:]] for other in respelled(field, value[0])]
    # Names may look like UUIDs, and are compared letter by letter.
    if not isinstance(value, str) or UUID.fullmatch(value) and not is_uuid(field):
        return []
    return accepted(value)


def entries_are_objects(listed, objects):
    for entry in listed.entries({}):
        whole = listed.shown(entry) if listed.shown else objects[listed.name(entry)]
        assert entry == whole, f"{listed}: {entry} is listed, and {whole} read"
        counted["entries that Get shows"] += 1


def empty_filters_nothing(listed, objects, filters, leaf):
    path, way, field = leaf
    if field.is_repeated or field.message_type:
        empty = [] if field.is_repeated else {}
    elif field.enum_type:
        empty = field.enum_type.values_by_number[0].name
    elif field.type == field.TYPE_STRING:
        empty = ""
    else:
        # Zero and false say something.
        return
    if field.message_type and field.message_type.name in ("Timestamp", "Duration"):
        return
    try:
        found = listed.names(nested(way, empty))
    except ConnectError as error:
        assert empty == "" and error.code == Code.INVALID_ARGUMENT, f"{listed} {path}: {error}"
        counted["empty texts refused"] += 1
        return
    without = sorted(name for name, item in objects.items() if not filters.values(path, item))
    fits = found == sorted(objects) or empty == "" and found == without
    assert fits, f"{listed} {path}={empty!r}: found {found}"
    counted["empty filters"] += 1


def all_fields():
    """Every field of every query, from all methods that list."""
    found = {}
    for key, (_, _, method) in CONTRACT.items():
        is_query = any(field.message_type and field.message_type.name.endswith("Query")
                       for field in method.input_type.fields)
        if is_query or key in PLAIN:
            found[key] = {path for path, _, _ in fields_of(key)}
    listing = {key for key in CONTRACT if "List" in key.rsplit("/")[1]} - UNFILTERED
    assert listing <= set(found), f"no query is known of {sorted(listing - set(found))}"
    return found


def everything_is_tried(listing):
    """Every method that lists and every query's field, but for the exceptions."""
    methods = all_fields()
    fields = set().union(*methods.values())
    for key in set(methods) - listing - set(ELSEWHERE):
        failures.append(f"not tried: {key}")
    for path in sorted(set(EXCEPTIONS) - fields):
        failures.append(f"an exception for nothing: {path}")
    for path in sorted(fields - set(EXCEPTIONS)):
        for kind, found in (("some", True), ("none", False)):
            if (path, found) not in tried:
                failures.append(f"no value of {path} finds {kind}")
    counted.update({"methods that list": len(listing), "query fields": len(fields),
                    "fields that find something": sum((path, True) in tried for path in fields),
                    "exceptions": len(EXCEPTIONS)})


def filters_of(site):
    """Predicates, with the reports and addresses that they look up."""
    machines = [as_dict(machine) for machine in site.admin("admin.MachineService/List").machines]
    networks = site.admin("admin.NetworkService/List").networks
    reports = {}
    for machine in machines:
        got = site.admin("admin.MachineService/GetBMC", uuid=machine["uuid"])
        reports[machine["uuid"]] = as_dict(got)["bmc_details"].get("bmc_report", {})
    addresses = {(network["network"], ip): machine["uuid"] for machine in machines
                 for network in machine.get("allocation", {}).get("networks", [])
                 for ip in network.get("ips", [])}
    return Filters(site, reports, {one.id: list(one.prefixes) for one in networks}, addresses)


def main():
    options = COMBINATIONS[0][1]
    site = Estate("lists", 1, Caller(sys.argv[1], options, os.environ["ADMIN_TOKEN"], set()))
    site.build()
    site.built_at = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
    filters, listing = filters_of(site), set()
    for listed in lists(site):
        objects = listed.objects()
        assert objects, listed
        listing.add(listed.key)
        if listed.entry_is_object or listed.shown:
            check(entries_are_objects, listed, objects)
        for leaf in listed.leaves:
            if leaf[0] not in EXCEPTIONS and (listed.key, leaf[0]) not in OWN_SENSE:
                check(filter_agrees, listed, filters, objects, leaf)
                check(empty_filters_nothing, listed, objects, filters, leaf)
    for rule in RULES:
        check(rule, site, counted)
    everything_is_tried(listing)
    for broken in failures:
        print(broken)
    print(", ".join(f"{count} {name}" for name, count in counted.items()))
    sys.exit(1 if failures else 0)


main()
