#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: join_ticket
short_description: Tickets with which agents and control nodes join
version_added: 0.1.0
description:
  - Creates a one-time ticket for the key of an agent or of a control node. It needs an admin role.
  - Each run creates a ticket; O(unless_joined) or a condition says when none is needed any more. The roles do.
  - An agent whose identity somebody revoked gets one only with O(reenrol).
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
attributes:
  check_mode:
    support: partial
    description: What would be done is computed.
    details: No ticket is created, and the server is asked only about agents.
  diff_mode:
    support: none
    description: A ticket has nothing before it.
options:
  kind:
    description: What joins.
    type: str
    required: true
    choices: [core, bmc, pixie, control]
  partition:
    description: Partition of the agent.
    type: str
  agent:
    description: Name of the agent; for V(core) the id of its switch.
    type: str
    aliases: [id]
  key_sha256:
    description: SHA-256 of the public key, as the agent's command C(key) prints it, and a control node that waits.
    type: str
  tpm_ek_sha256:
    description: SHA-256 of the public endorsement key of the host's TPM, as the agent's command C(tpm) prints it.
    type: str
  peer_address:
    description:
      - Address, V(HOST:PORT), by which other control nodes reach the node. With it the ticket of a control
        node needs no key, and is good for the first key that shows it from there.
    type: str
  reenrol:
    description:
      - Whether an agent whose identity was revoked may join again. Without it the task fails, and says who
        revoked the identity and when.
      - Control knows of a revocation as long as the identity could come back; see C(metalmesh identity list --all).
    type: bool
    default: false
  unless_joined:
    description: Whether an agent gets no ticket while it has an identity that is in force.
    type: bool
    default: false
  minutes:
    description: How long the ticket is valid, at most 1440.
    type: int
    default: 15
"""

EXAMPLES = r"""
- name: A ticket for the agent of a leaf
  metalmesh.metalmesh.join_ticket:
    kind: core
    partition: fra-1
    agent: leaf-1
    key_sha256: "{{ key.stdout }}"
  register: ticket
  no_log: true
"""

RETURN = r"""
secret:
  description: Content of the ticket file.
  returned: when a ticket was created
  type: str
invitation:
  description: The line that C(metalmeshd join) reads, with the same ticket and what the node has to know.
  returned: when a control node was invited
  type: str
ticket:
  description: The ticket, or the invited node.
  returned: when a ticket was created or a node invited
  type: dict
identity:
  description: The identity that the agent has, which may be revoked or over.
  returned: when the agent has joined before
  type: dict
"""

import datetime

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import full
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import presented
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import (
    connect, fail, new_module)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError

SPEC = {
    "kind": {"type": "str", "required": True, "choices": ["core", "bmc", "pixie", "control"]},
    "partition": {"type": "str"},
    "agent": {"type": "str", "aliases": ["id"]},
    "key_sha256": {"type": "str", "no_log": False},
    "peer_address": {"type": "str"},
    "tpm_ek_sha256": {"type": "str"},
    "minutes": {"type": "int", "default": 15},
    "reenrol": {"type": "bool", "default": False},
    "unless_joined": {"type": "bool", "default": False},
}
AGENT = ["partition", "agent"]
CONDITIONS = {"required_if": [["kind", "core", AGENT], ["kind", "bmc", AGENT],
                              ["kind", "pixie", AGENT],
                              ["kind", "control", ["key_sha256", "peer_address"], True]],
              "required_one_of": [["key_sha256", "tpm_ek_sha256", "peer_address"]]}


def identity_of(client, params):
    """The identity of the agent; None if it has never joined, or so long ago that control forgot it."""
    name = "partition/%s/%s/%s" % (params["partition"], params["kind"], params["agent"])
    answer = client.find("metalmesh.admin.v1.IdentityService", "Get", {"id": name}) or {}
    return answer.get("identity")


def is_in_force(identity, now):
    """True if an agent comes in with an identity at a time, which is RFC 3339 in UTC as well."""
    return not identity.get("revokedAt") and identity.get("expiresAt", "") > now


def check_revoked(identity, params):
    """Refuses an agent that somebody revoked, unless the task takes it back."""
    if identity.get("revokedAt") and not params["reenrol"]:
        raise Refusal(
            "%s was revoked at %s (%s), and a ticket would let it in again; find out why, then give "
            "reenrol: true (role variable agent_reenrol)" % (
                identity.get("id"), identity["revokedAt"],
                identity.get("revokedReason") or "without a reason"))


def of_agent(client, params):
    """A ticket of an agent."""
    identity = identity_of(client, params)
    known = {"identity": presented(identity)} if identity else {}
    if identity:
        check_revoked(identity, params)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        if params["unless_joined"] and is_in_force(identity, now):
            return dict(known, changed=False)
    # Control refuses a dry run of it.
    if client.dry_run:
        return dict(known, changed=True)
    request = {"kind": full("AGENT_KIND", params["kind"]), "partition": params["partition"],
               "id": params["agent"], "keySha256": params["key_sha256"] or "",
               "tpmEkSha256": params["tpm_ek_sha256"] or "", "minutes": params["minutes"]}
    # Only where it is needed: control nodes of feature level 1 do not know it.
    if identity and identity.get("revokedAt"):
        request["reenrol"] = True
    answer = client.call("metalmesh.admin.v1.JoinService", "Create", request)
    return dict(known, changed=True, ticket=answer.get("ticket"), secret=answer.get("secret"))


def of_node(client, params):
    """A ticket of a control node."""
    if client.dry_run:
        return {"changed": True}
    request = {"minutes": params["minutes"]}
    for option, name in (("key_sha256", "keySha256"), ("peer_address", "peerAddress")):
        if params[option]:
            request[name] = params[option]
    answer = client.call("metalmesh.admin.v1.ClusterService", "Invite", request)
    return {"changed": True, "ticket": answer.get("node"), "secret": answer.get("secret"),
            "invitation": answer.get("invitation")}


def settle(client, params):
    """The result of a task."""
    made = of_node(client, params) if params["kind"] == "control" else of_agent(client, params)
    result = {name: value for name, value in made.items() if value is not None}
    if "ticket" in result:
        result["ticket"] = presented(result["ticket"])
    return result


def main():
    module = new_module(SPEC, CONDITIONS)
    client = connect(module)
    try:
        result = settle(client, module.params)
    except (ApiError, Refusal) as error:
        fail(module, error)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
