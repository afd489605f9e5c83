# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Restarts of control nodes in turn."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.tests.unit.roles.site import Api, Site

HOSTS = ["one", "two", "three"]
ROLE = "metalmesh.metalmesh.control"
TURN = [{"name": "In turn", "ansible.builtin.include_role": {"name": ROLE, "tasks_from": "turn.yml"}}]


@pytest.fixture(name="site")
def _site(tmp_path):
    site = Site(tmp_path, HOSTS)
    for host in HOSTS:
        site.wrote(host, "conf", 500)
        site.started(host, 300)
    return site


def restarted(site, timeout=30, tasks=None):
    """Runs the tasks that restart nodes. Returns the hosts that were, and the finished process."""
    with Api({"ClusterService/Status": lambda _request: site.status()}) as api:
        done = site.play(tasks or TURN, {
            "control_config_file": "{{ place }}/conf", "control_first_api_url": api.url,
            "control_admin_token": "token-of-this-test", "control_health_timeout": timeout})
    return [line.split()[0] for line in site.events("restart")], done


def test_nodes_with_a_newer_file_restart_in_turn_and_no_others(site):
    for host in ("one", "three"):
        site.wrote(host, "conf", 100)
    hosts, done = restarted(site)
    assert hosts == ["one", "three"], done.stdout
    assert done.returncode == 0, done.stdout
    # The program is newer than its file now.
    hosts, done = restarted(site)
    assert hosts == ["one", "three"] and "changed=0" in done.stdout


def test_nothing_is_restarted_while_a_voter_does_not_answer(site):
    site.wrote("one", "conf", 100)
    site.dead.add("three")
    hosts, done = restarted(site, timeout=5)
    assert hosts == [] and done.returncode != 0, done.stdout
    assert "control node 3 at three:4444 does not answer" in done.stdout


def test_the_next_node_is_left_alone_when_one_does_not_come_back(site):
    for host in HOSTS:
        site.wrote(host, "conf", 100)
    site.breaks("two")
    hosts, done = restarted(site, timeout=9)
    assert hosts == ["one", "two"] and done.returncode != 0, done.stdout
    assert "control node 2 at two:4444" in done.stdout


def test_nothing_is_restarted_after_a_host_failed(site):
    for host in HOSTS:
        site.wrote(host, "conf", 100)
    failing = {"name": "Fails", "ansible.builtin.fail": {}, "when": "inventory_hostname == 'two'"}
    hosts, done = restarted(site, tasks=[failing] + TURN)
    assert hosts == [] and done.returncode != 0, done.stdout
    assert "two" in done.stdout
