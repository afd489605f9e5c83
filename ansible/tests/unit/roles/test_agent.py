# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Tickets of agents, as the role orders them."""
from __future__ import annotations

import getpass

import pytest

from ansible_collections.metalmesh.metalmesh.tests.unit.roles.site import Api, Site

ROLE = "metalmesh.metalmesh.agent"
TICKET = [
    {"name": "Session", "ansible.builtin.stat": {"path": "{{ agent_session_file }}"}, "register": "agent_session"},
    {"name": "Ticket", "ansible.builtin.include_role": {"name": ROLE, "tasks_from": "ticket.yml"}}]
REVOKED = {"id": "spiffe://d/partition/fra/core/leaf", "expiresAt": "2999-01-01T00:00:00Z",
           "revokedAt": "2026-01-02T00:00:00Z", "revokedReason": "stolen"}
SECRET = "secret-of-the-ticket"


@pytest.mark.parametrize("reenrol", [False, True])
def test_a_revoked_agent_gets_a_ticket_only_when_somebody_says_so(tmp_path, reenrol):
    site = Site(tmp_path, ["leaf"])
    ticket = tmp_path / "leaf" / "ticket"
    with Api({"IdentityService/Get": {"identity": REVOKED},
              "JoinService/Create": {"ticket": {"id": "t"}, "secret": SECRET}}) as api:
        done = site.play(TICKET, {
            "agent_kind": "core", "agent_partition": "fra", "agent_id": "leaf", "agent_reenrol": reenrol,
            "agent_api_url": api.url, "agent_api_token": "token-of-this-test", "agent_api_host": "leaf",
            "agent_user": getpass.getuser(), "agent_session_file": "{{ place }}/session.json",
            "agent_ticket_file": "{{ place }}/ticket"})
    made = [body for method, body in api.calls if method == "JoinService/Create"]
    assert SECRET not in done.stdout and "token-of-this-test" not in done.stdout
    assert "token-of-this-test" not in " ".join(site.events())
    if reenrol:
        assert done.returncode == 0, done.stdout
        assert ticket.read_text() == SECRET + "\n" and ticket.stat().st_mode & 0o777 == 0o600
        assert [body["keySha256"] for body in made] == ["0123abcd"]
    else:
        assert done.returncode != 0 and not ticket.exists() and not made
        assert "was revoked at 2026-01-02T00:00:00Z (stolen)" in done.stdout
