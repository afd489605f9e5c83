# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Machines and firewalls of a project: what their modules share.

An allocation is created with an idempotency key that is made of its request, so that two runs at
once get one machine. Most of it is fixed from then on: a difference there is a warning, as the
published modules ignore it.
"""
from __future__ import annotations

import hashlib
import json

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Codec, Items
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import full
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    CREATE, IGNORE, WARN, Field, create_request)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    get_path, presented)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import (
    ApiError, as_base64)

MACHINES = "metalstack.api.v2.MachineService"
ADDRESSES = "metalstack.api.v2.IPService"
# Refusals of an idempotency key that another request, or a machine that was freed, has used.
USED_KEYS = ("MM-1011", "MM-1012")
# Keys that are tried, one for each time that an allocation of this request was freed in a day.
KEYS_MAX = 16
PHONED_HOME = "MACHINE_PROVISIONING_EVENT_TYPE_PHONED_HOME"
LIST_OF_TEXTS = {"type": "list", "elements": "str"}


class Image(Codec):
    """An image: its name without a version stands for every version."""

    def same(self, wanted, observed):
        return wanted == observed or observed.startswith(wanted + ".")


class UserData(Codec):
    """User data as text or base64; both are the same."""

    def wanted(self, value):
        return as_base64(value) if value.strip() else ""

    def observed(self, value):
        return as_base64(value) if value else ""


class Keys(Items):
    """SSH keys, which a request may leave out."""

    def wanted(self, value):
        return sorted(key.strip() for key in value)

    def observed(self, value):
        return sorted(value or [])


class PlacementLabels(Codec):
    """Labels of placement, whole."""

    def observed(self, value):
        return dict((value or {}).get("labels") or {})

    def created(self, wanted):
        return {"labels": wanted}


def allocation_fields():
    """The fields of an allocation, without labels."""
    at = "allocation."
    fixed = {"update": None, "fixed": WARN}
    texts = dict(LIST_OF_TEXTS)
    return (
        Field("name", at + "name", create="name", **fixed),
        Field("description", at + "description", create="description", update="description"),
        Field("hostname", at + "hostname", create="hostname", **fixed),
        Field("partition", "partition.id", create="partition", **fixed),
        Field("size", "size.id", create="size", **fixed),
        Field("image", at + "image.id", Image(), create="image", **fixed),
        Field("ssh_pub_keys", at + "sshPublicKeys", Keys(), create="sshPublicKeys",
              update="sshPublicKeys", keeps_empty=True,
              spec=dict(texts, aliases=["ssh_public_keys"], no_log=False)),
        Field("userdata", at + "userdata", UserData(), create="userdata", update=None, fixed=IGNORE,
              spec={"type": "str"}),
        Field("placement_labels", at + "placementLabels", PlacementLabels(),
              create="placementLabels", spec={"type": "dict"}, **fixed),
        Field("dns_servers", at + "dnsServers", Items("ip"), create="dnsServers", spec=texts,
              **fixed),
        Field("ntp_servers", at + "ntpServers", Items("address"), create="ntpServers", spec=texts,
              **fixed),
    )


def parsed_networks(networks):
    """Networks of a task: (id, whether it gets a new address, addresses)."""
    parsed = []
    for one in networks or []:
        if isinstance(one, dict):
            if not one.get("network"):
                raise Refusal("networks: %r names no network" % (one,))
            ips = [str(address) for address in one.get("ips") or []]
            parsed.append((str(one["network"]), not ips, ips))
            continue
        name, sign, mode = str(one).rpartition(":")
        if not sign or mode not in ("auto", "noauto"):
            name, mode = str(one), "auto"
        parsed.append((name, mode == "auto", []))
    return parsed


def placed_addresses(networks, addresses):
    """The networks of a request. `addresses` has the network of each given address."""
    wanted = {name: list(ips) for name, _auto, ips in networks}
    for address, network in addresses:
        wanted.setdefault(network, []).append(address)
    for name, auto, _ips in networks:
        if not auto and not wanted[name]:
            raise Refusal("networks: %s:noauto has no address; name one of this network in ips"
                          % name)
    return [dict({"network": name}, **({"ips": ips} if ips else {}))
            for name, ips in wanted.items()]


def request_key(request, attempt):
    """The idempotency key of a request."""
    text = json.dumps(request, sort_keys=True)
    return "ansible-%s-%d" % (hashlib.sha256(text.encode("utf-8")).hexdigest(), attempt)


class Allocation(Handler):
    """A machine or a firewall of a project."""

    key = "machine"
    service = MACHINES
    identity = "uuid"
    id_option = "uuid"
    owned = True
    waits = True
    labels_read = "allocation.meta.labels"
    # The machine's events change it as well, so that the time of its last change says nothing about
    # the allocation. Labels are patched, and no change of somebody else is lost.
    locking = "SERVER"
    allocation_type = ""
    options = {
        "id": {"type": "str", "aliases": ["uuid"]},
        "project": {"type": "str", "required": True},
        "networks": {"type": "list", "elements": "raw"},
        "ips": LIST_OF_TEXTS,
        "tags": LIST_OF_TEXTS,
    }
    conditions = {"required_one_of": [["id", "name"]]}

    @classmethod
    def table(cls):
        return allocation_fields()

    @property
    def name(self):
        return self.params.get("name") or self.params["id"]

    def scope(self):
        return {"project": self.params["project"]}

    def find(self):
        if self.params.get("id"):
            answer = self.client.find(self.service, "Get", dict(self.scope(), uuid=self.params["id"]))
            found = (answer or {}).get("machine")
        else:
            query = {"allocation": {"name": self.params["name"], "project": self.params["project"]}}
            answer = self.client.find(self.service, "List", dict(self.scope(), query=query)) or {}
            found = self.only(answer.get("machines", []))
        kind = get_path(found or {}, "allocation.allocationType")
        if found and kind and kind != full("MACHINE_ALLOCATION_TYPE", self.allocation_type):
            raise Refusal("%s is a %s; use the module for it" % (
                self.name, presented(kind, "allocationType")))
        return found

    def prepare(self, actual):
        if actual is None and not self.params.get("name"):
            raise Refusal("machine %s has no allocation in this project; give the name of a new one"
                          % self.params["id"])

    def networks(self):
        """The networks of a request, with the network of each given address looked up."""
        addresses = []
        for address in self.params.get("ips") or []:
            answer = self.client.call(ADDRESSES, "Get", dict(self.scope(), ip=address))
            addresses.append((address, get_path(answer, "ip.network")))
        return placed_addresses(parsed_networks(self.params.get("networks")), addresses)

    def request(self, plan):
        """The request that allocates."""
        request = create_request(self.fields, plan.wanted, owned=True)
        request.update(self.scope())
        if self.params.get("id"):
            request["uuid"] = self.params["id"]
        request["networks"] = self.networks()
        request["allocationType"] = full("MACHINE_ALLOCATION_TYPE", self.allocation_type)
        return request

    def create(self, plan):
        request = self.request(plan)
        for attempt in range(KEYS_MAX):
            try:
                headers = {"Idempotency-Key": request_key(request, attempt)}
                return self.client.call(self.service, "Create", request, headers).get("machine")
            except ApiError as error:
                if error.number not in USED_KEYS or attempt + 1 == KEYS_MAX:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def plan(self, actual, state):
        if actual is not None and "allocation" not in actual:
            actual = None
        plan = super().plan(actual, state)
        if plan.action == CREATE:
            plan.after.update({name: self.params[name] for name in ("networks", "ips")
                               if self.params.get(name)})
        return plan

    def is_settled(self, actual):
        events = get_path(actual or {}, "recentProvisioningEvents") or {}
        state = events.get("state", "")
        if state.endswith("_CRASHLOOP"):
            raise Refusal("%s %s is in a crash loop: %s" % (
                self.kind, self.name, get_path(events, "lastErrorEvent.message") or "see its events"))
        last = (events.get("events") or [{}])
        newest = max(last, key=lambda event: event.get("time", ""))
        return newest.get("event") == PHONED_HOME

    def is_gone(self, actual):
        # A machine that the project owns or leases stays in its sight.
        return actual is None or "allocation" not in actual

    def describe(self, actual):
        events = get_path(actual or {}, "recentProvisioningEvents.events") or []
        names = [presented(event.get("event", ""), "event") for event in events]
        return "its events are %s" % (", ".join(names) or "none")
