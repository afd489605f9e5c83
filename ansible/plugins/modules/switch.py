#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: switch
short_description: Switches
version_added: 0.1.0
description:
  - Changes switches, moves their traffic away, sets their ports, and removes them. It needs an admin role.
  - A switch registers itself by its agent; the module creates none.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
options:
  id:
    description: Id, the switch's host name.
    type: str
    required: true
    aliases: [name]
  description:
    description: Free text.
    type: str
  replace_mode:
    description: V(replace) prepares the switch for being replaced by one that takes its place.
    type: str
    choices: [replace, operational]
  management_ip:
    description: Address in the management network.
    type: str
  management_user:
    description: User for the log-in.
    type: str
  console_command:
    description: Command that opens the console.
    type: str
  drained:
    description: Whether traffic is moved to the other leaf, such as before an upgrade.
    type: bool
  ports:
    description: Ports that are to be up or down. Others stay as they are.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the port.
        type: str
        required: true
      status:
        description: What the port is to be.
        type: str
        required: true
        choices: [up, down]
  force:
    description:
      - Whether O(drained=true) goes on while a machine has no other way, and O(state=absent) removes a
        switch with machines.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Move traffic away
  metalmesh.metalmesh.switch:
    id: leaf-1
    drained: true
"""

RETURN = r"""
id:
  description: Id of the switch.
  returned: when there is one
  type: str
switch:
  description: The switch. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import (
    Choice, Codec, Flag)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import (
    choices, full, short_of)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

FABRIC = "metalmesh.admin.v1.FabricService"
PORT = {
    "name": {"type": "str", "required": True},
    "status": {"type": "str", "required": True, "choices": ["up", "down"]},
}
# Fields that have calls of their own.
DRAINED = "drained"
PORTS = "ports"


class Ports(Codec):
    """The desired states of ports, by name."""

    def wanted(self, value):
        return {one["name"]: one["status"] for one in value}

    def observed(self, value):
        states = {one.get("name"): one.get("state") or {} for one in value or []}
        # A port that nobody has set is up.
        return {name: short_of(state.get("desired", "SWITCH_PORT_STATUS_UP"))
                for name, state in states.items()}

    def same(self, wanted, observed):
        return all(observed.get(name) == status for name, status in wanted.items())

    def merged(self, wanted, observed):
        return dict(observed, **wanted)


class Switch(Handler):
    """A switch that has registered."""

    kind = "switch"
    key = "switch"
    service = "metalstack.admin.v2.SwitchService"
    labelled = False
    options = {
        "id": {"type": "str", "required": True, "aliases": ["name"]},
        "force": {"type": "bool", "default": False},
    }

    @classmethod
    def table(cls):
        return (
            Field("description", "description"),
            Field("replace_mode", "replaceMode", Choice("SWITCH_REPLACE_MODE"),
                  spec={"type": "str", "choices": choices("SWITCH_REPLACE_MODE")}),
            Field("management_ip", "managementIp"),
            Field("management_user", "managementUser"),
            Field("console_command", "consoleCommand"),
            Field(DRAINED, "drained", Flag(), spec={"type": "bool"}),
            Field(PORTS, "nics", Ports(), spec={"type": "list", "elements": "dict",
                                                "options": PORT}),
        )

    @property
    def name(self):
        return self.params["id"]

    def find(self):
        found = (self.client.find(self.service, "Get", {"id": self.name}) or {}).get("switch")
        if found is not None and self.params[DRAINED] is not None:
            fabric = self.client.call(FABRIC, "Get", {"id": self.name}).get("switch", {})
            found["drained"] = "drainedAt" in fabric
        return found

    def prepare(self, actual):
        if actual is None:
            raise Refusal("switch %s has not registered; join its agent: role core, or metalmesh join "
                          "create core" % self.name)
        known = {one.get("name") for one in actual.get("nics", [])}
        unknown = [one["name"] for one in self.params[PORTS] or [] if one["name"] not in known]
        if unknown:
            raise Refusal("ports: switch %s has no port %s" % (self.name, ", ".join(unknown)))

    def update(self, plan, actual):
        after = actual
        of_calls = [one for one in plan.changed if one.option in (DRAINED, PORTS)]
        plan.changed = [one for one in plan.changed if one not in of_calls]
        if plan.changed:
            after = super().update(plan, actual)
        for one in of_calls:
            call = self._drain if one.option == DRAINED else self._set_ports
            after = call(plan, actual) or after
        return after

    def _drain(self, plan, actual):
        drained = plan.wanted[DRAINED]
        self.client.call(FABRIC, "Drain", {"id": self.name, "drained": drained,
                                           "force": self.params["force"]})
        return dict(actual, drained=drained)

    def _set_ports(self, plan, actual):
        before = Ports().observed(actual.get("nics"))
        after = None
        for port, status in plan.wanted[PORTS].items():
            if before.get(port) != status:
                request = {"id": self.name, "nicName": port,
                           "status": full("SWITCH_PORT_STATUS", status)}
                after = self.client.call(self.service, "Port", request).get("switch")
        return after

    def address(self, actual):
        return {"id": self.name}

    def delete(self, actual):
        request = {"id": self.name, "force": self.params["force"]}
        self.client.call(self.service, "Delete", request)


def main():
    run(Switch)


if __name__ == "__main__":
    main()
