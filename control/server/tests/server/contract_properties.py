"""Holds the published contract's methods against rules that hold for all of them, through the
published client; fields and queries are read from the contract, none is named here by hand.

- What was read and is written back unchanged changes nothing: all of it, and each field alone.
- A field of an update changes what it says and nothing else, or the update is refused.
- A list's filter finds what a plain filter over the whole list finds.
- A choice that is unspecified filters nothing; a text that is empty filters nothing, or finds those
  that have none, or is refused.
- An id is found in each of its spellings, and shown in one.

Usage: ADMIN_TOKEN=... contract_properties.py http://127.0.0.1:PORT
"""

import os
import sys
from collections import Counter

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.protobuf import json_format

from contract import COMBINATIONS
from caller import CONTRACT, NEWEST, Caller
from world import Site

REFUSED = {Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.PERMISSION_DENIED}
# Of an update, beside the object's own fields.
ABOUT_THE_UPDATE = {"update_meta", "updated_at", "force"}
# They change with time or with what others do.
MOVING = {"consumption", "last_heartbeat", "last_sync", "recent_provisioning_events", "allocation_time"}
counted = Counter()
failures = []


def check(rule, *of):
    """All that is broken is told, not only the first."""
    try:
        rule(*of)
    except (AssertionError, ConnectError) as error:
        notes = " ".join(getattr(error, "__notes__", []))
        failures.append(f"{rule.__name__}: {error} {notes}")


def as_dict(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def attempt(act):
    """What a call answers, or the code of its refusal; every other failure is one of ours."""
    try:
        return act(), None
    except ConnectError as error:
        assert error.code in REFUSED, f"{error.code}: {error} {error.__notes__}"
        return None, error.code


class Thing:
    """An object that can be read and updated: who updates it, by which methods, named by what."""

    def __init__(self, who, update, get, named, path, reader=None, read_by=None, always=()):
        self.who, self.update_key, self.named, self.path = who, update, named, path
        self.always = always
        self.reader, self.get_key, self.read_by = reader or who, get, read_by or named
        own = {*named, *ABOUT_THE_UPDATE}
        fields = CONTRACT[update][2].input_type.fields
        self.fields = {it.name: it for it in fields if it.name not in own}

    def __str__(self):
        return f"{self.update_key} {self.named}"

    def read(self):
        """Content and labels."""
        found = as_dict(self.reader(self.get_key, **self.read_by))
        for step in self.path:
            found = found[step]
        labels = found.get("meta", {}).get("labels", {}).get("labels", {})
        return {name: it for name, it in found.items() if name not in MOVING | {"meta"}}, labels

    def update(self, fields):
        if self.always:
            # The contract wants these in every update.
            content, _ = self.read()
            fields = {**{name: content[name] for name in self.always}, **fields}
        return self.who(self.update_key, **self.named, updateMeta=NEWEST, **fields)

    def written_back(self):
        """Each field of the update as it is."""
        content, labels = self.read()
        fields = {name: content[name] for name in self.fields if name in content}
        if "labels" in self.fields:
            fields["labels"] = {"replace": {"labels": labels}}
        return fields


def unchanged_is_a_no_op(thing):
    before, fields = thing.read(), thing.written_back()
    for part in (fields, *({name: it} for name, it in fields.items()), {}):
        thing.update(part)
        assert thing.read() == before, f"{thing} {part}: {before} became {thing.read()}"
        counted["updates that change nothing"] += 1


def another(field, value):
    """Another value of a field, or none where there is none that means something."""
    if field.is_repeated:
        return value[:-1] if isinstance(value, list) and len(value) > 1 else None
    if field.type == field.TYPE_ENUM:
        names = [it.name for it in field.enum_type.values if it.number]
        return next((it for it in names if it != value), None)
    if field.type == field.TYPE_STRING:
        for part, other in (("url", "http://y.example/z"), ("email", "a@b.example"),
                            ("_ip", "10.9.7.7")):
            if part in field.name:
                return other
        return "something else"
    if field.type in (field.TYPE_INT32, field.TYPE_UINT32):
        return (value or 0) + 1
    return None


def a_change_is_what_it_says(thing):
    for name, field in thing.fields.items():
        content, labels = thing.read()
        other = another(field, content.get(name))
        if other is None or name == "labels":
            continue
        _, refused = attempt(lambda: thing.update({name: other}))
        wanted = content if refused else {**content, name: other}
        assert thing.read() == (wanted, labels), f"{thing} {name}: {thing.read()} not {wanted}"
        counted["changes refused" if refused else "changes made"] += 1
        if not refused and name in content:
            attempt(lambda: thing.update({name: content[name]}))
    if "labels" in thing.fields:
        content, labels = thing.read()
        thing.update({"labels": {"patch": {"update": {"labels": {"a": "b"}}}}})
        assert thing.read() == (content, {**labels, "a": "b"}), thing
        thing.update({"labels": {"patch": {"remove": ["a"]}}})
        assert thing.read() == (content, labels), thing
        counted["changes made"] += 2


class List:
    """A method that lists, and the name of what it lists."""

    def __init__(self, who, key, **named):
        self.who, self.key, self.named = who, key, named
        method = CONTRACT[key][2]
        self.items = next(it for it in method.output_type.fields if it.is_repeated)
        query = method.input_type.fields_by_name.get("query")
        self.query = query.message_type if query else None

    def read(self, query):
        got = as_dict(self.who(self.key, **self.named, query=query))
        return [self.still(it) for it in got.get(self.items.name, [])]

    @staticmethod
    def still(item):
        return {name: it for name, it in item.items() if name not in MOVING}


def plain(field):
    return not field.is_repeated and field.type != field.TYPE_MESSAGE


def filters_agree(listed):
    everything = listed.read({})
    assert everything, listed.key
    of_items = listed.items.message_type.fields_by_name
    for field in listed.query.fields:
        own = of_items.get(field.name)
        if own is None or not plain(field) or own.type != field.type or not plain(own):
            continue
        for value in {it[field.name] for it in everything if field.name in it}:
            found = listed.read({field.name: value})
            wanted = [it for it in everything if it.get(field.name) == value]
            assert found == wanted, f"{listed.key} {field.name}={value}: {found} not {wanted}"
            counted["filters"] += 1
    if "labels" in listed.query.fields_by_name:
        for item in everything:
            labels = item.get("meta", {}).get("labels", {}).get("labels", {})
            if labels:
                found = listed.read({"labels": {"labels": labels}})
                assert item in found, f"{listed.key} {labels}"
                counted["filters"] += 1


def nothing_filters_nothing(listed):
    everything = listed.read({})
    for field in listed.query.fields:
        if field.is_repeated or field.type == field.TYPE_MESSAGE:
            empty = [] if field.is_repeated else {}
        elif field.type == field.TYPE_ENUM:
            empty = field.enum_type.values_by_number[0].name
        elif field.type == field.TYPE_STRING:
            empty = ""
        else:
            # Zero and false say something.
            continue
        found, refused = attempt(lambda: listed.read({field.name: empty}))
        without = [it for it in everything if not it.get(field.name)]
        fits = refused or found == everything
        fits = fits or field.type == field.TYPE_STRING and found == without
        assert fits, f"{listed.key} {field.name}={empty!r}: {found}"
        counted["empty filters"] += 1


def ids_have_one_spelling(who, key, shown, **named):
    """`named` is a UUID; every spelling finds it, and the answer has the one."""
    (field, uuid), *rest = named.items()
    for spelling in (uuid, uuid.upper(), f"{uuid[:9].upper()}{uuid[9:]}"):
        got = as_dict(who(key, **{field: spelling}, **dict(rest)))
        assert shown(got) == uuid, f"{key} {spelling}: {got}"
        counted["spellings"] += 1


def things(site):
    """One of each kind of what can be updated; of networks one of each type."""
    admin, owner, tag, of = site.admin, site.owner, site.tag, {"project": site.project}
    for kind, attribute in (("Partition", "partition"), ("Size", "size"),
                            ("Filesystem", "filesystem_layout")):
        yield Thing(admin, f"admin.{kind}Service/Update", f"api.{kind}Service/Get", {"id": tag},
                    [attribute])
    yield Thing(admin, "admin.ImageService/Update", "api.ImageService/Get", {"id": site.image},
                ["image"])
    yield Thing(admin, "admin.SizeImageConstraintService/Update",
                "admin.SizeImageConstraintService/Get", {"size": tag}, ["size_image_constraint"])
    yield Thing(admin, "admin.SwitchService/Update", "admin.SwitchService/Get",
                {"id": site.leaf}, ["switch"])
    for network in (*(f"{kind}-{tag}" for kind in ("super", "underlay", "external", "spaces")),
                    site.network):
        yield Thing(admin, "admin.NetworkService/Update", "admin.NetworkService/Get",
                    {"id": network}, ["network"])
    yield Thing(admin, "admin.SizeReservationService/Update", "api.SizeReservationService/Get",
                {"id": site.kept}, ["size_reservation"], owner, {**of, "id": site.kept}, always=["partitions"])
    for kind, attribute, named in (
            ("Network", "network", {**of, "id": site.network}),
            ("IP", "ip", {**of, "ip": site.ip}),
            ("Project", "project", of),
            ("Tenant", "tenant", {"login": site.tenant}),
            ("Token", "token", {"uuid": site.token})):
        yield Thing(owner, f"api.{kind}Service/Update", f"api.{kind}Service/Get", named,
                    [attribute])
    yield Thing(owner, "api.MachineService/Update", "api.MachineService/Get",
                {**of, "uuid": site.node}, ["machine", "allocation"])


def lists(site):
    admin, owner, of = site.admin, site.owner, {"project": site.project}
    for key, (_, _, method) in CONTRACT.items():
        fields = method.input_type.fields_by_name
        if not key.endswith("/List") or "query" not in fields or "Audit" in key:
            continue
        named = of if "project" in fields else {}
        yield List(owner if key.startswith("api.") else admin, key, **named)


def prepare(site):
    """What `Site` has not got of itself."""
    admin, owner, tag, of = site.admin, site.owner, site.tag, {"project": site.project}
    kinds = {"underlay": {"partition": tag}, "external": {"vrf": 77, "natType":
             "NAT_TYPE_IPV4_MASQUERADE", "destinationPrefixes": ["0.0.0.0/0"]},
             "super-namespaced": {"defaultChildPrefixLength": {"ipv4": 28},
                                  "additionalAnnouncableCidrs": ["10.200.0.0/16"]}}
    for at, (kind, fields) in enumerate(kinds.items()):
        name = "spaces" if kind == "super-namespaced" else kind
        admin("admin.NetworkService/Create", id=f"{name}-{tag}", prefixes=[f"192.0.{at}.0/24"],
              type=f"NETWORK_TYPE_{kind.upper().replace('-', '_')}", **fields)
    site.ip = owner("api.IPService/Create", **of, network=site.network, name="web").ip.ip
    site.kept = admin("admin.SizeReservationService/Create", sizeReservation={
        "name": "first", "project": site.project, "size": tag, "amount": 1,
        "partitions": [tag]}).size_reservation.id
    site.token = owner("api.TokenService/Create", description="CI", expires="3600s",
                       projectRoles={site.project: "PROJECT_ROLE_VIEWER"}).token.uuid


def main():
    label, options = COMBINATIONS[0]
    admin = Caller(sys.argv[1], options, os.environ["ADMIN_TOKEN"], set())
    site = Site("props", 1, admin)
    for part in (site.catalogue, site.people, site.networks, site.agents, site.allocate):
        part()
    prepare(site)
    for thing in things(site):
        check(unchanged_is_a_no_op, thing)
        check(a_change_is_what_it_says, thing)
    for listed in lists(site):
        check(filters_agree, listed)
        check(nothing_filters_nothing, listed)
    of = {"project": site.project}
    ids_have_one_spelling(site.owner, "api.ProjectService/Get",
                          lambda it: it["project"]["uuid"], **of)
    ids_have_one_spelling(site.owner, "api.MachineService/Get",
                          lambda it: it["machine"]["uuid"], uuid=site.node, **of)
    ids_have_one_spelling(site.owner, "api.SizeReservationService/Get",
                          lambda it: it["size_reservation"]["id"], id=site.kept, **of)
    ids_have_one_spelling(site.owner, "api.TokenService/Get",
                          lambda it: it["token"]["uuid"], uuid=site.token)
    print(", ".join(f"{count} {name}" for name, count in counted.items()))
    for broken in failures:
        print(broken)
    sys.exit(1 if failures else 0)


main()
