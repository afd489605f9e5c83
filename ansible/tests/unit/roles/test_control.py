# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Restarts of control nodes in turn."""
from __future__ import annotations

import json
import pathlib

import pytest
import yaml

from ansible_collections.metalmesh.metalmesh.tests.unit.roles.site import Api, Site

HOSTS = ["one", "two", "three"]
TASKS = pathlib.Path(__file__).parents[3] / "roles/control/tasks"
ROLE = "metalmesh.metalmesh.control"
TURN = [{"name": "In turn", "ansible.builtin.include_role": {"name": ROLE, "tasks_from": "turn.yml"}}]


@pytest.fixture(name="site")
def _site(tmp_path):
    site = Site(tmp_path, HOSTS)
    for host in HOSTS:
        site.wrote(host, "conf", 500)
        site.started(host, 300)
    return site


def restarted(site, timeout=30, tasks=None, arguments=()):
    """Runs the tasks that restart nodes. Returns the hosts that were, and the finished process."""
    with Api({"ClusterService/Status": lambda _request: site.status()}) as api:
        done = site.play(tasks or TURN, {
            "control_config_file": "{{ place }}/conf", "control_first_api_url": api.url,
            "control_admin_token": "token-of-this-test", "control_health_timeout": timeout}, arguments)
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


def test_check_mode_names_the_restart_of_a_node_whose_file_would_change(site):
    task = {"name": "Write the file", "register": "control_file", "ansible.builtin.copy": {
        "content": "{{ 'new' if inventory_hostname == 'two' else '' }}", "dest": "{{ place }}/conf",
        "mode": "0600"}}
    for host in HOSTS:
        (site.place / host / "conf").chmod(0o600)
    hosts, done = restarted(site, tasks=[task] + TURN, arguments=["--check"])
    assert hosts == [] and done.returncode == 0, done.stdout
    assert "changed: [one -> two]" in done.stdout and "-> three]" not in done.stdout, done.stdout


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


def test_a_token_is_in_no_output(site):
    site.wrote("one", "conf", 100)
    _hosts, done = restarted(site)
    assert "token-of-this-test" not in done.stdout and "restart" in " ".join(site.events())


def looked(site, first):
    """Runs the checks of hosts, with the host that is named first."""
    return site.play(
        [{"name": "Hosts", "ansible.builtin.include_role": {"name": ROLE, "tasks_from": "hosts.yml"}}],
        {"control_hosts": [first] + [host for host in HOSTS if host != first],
         "control_node_file": "%s/{{ control_other | default(inventory_hostname) }}/NODE" % site.place,
         "control_former_data_dir": "{{ place }}/former"})


def test_a_lost_first_host_forms_no_second_cluster(site):
    for host in ("two", "three"):
        site.wrote(host, "NODE", 500)
    done = looked(site, "one")
    assert done.returncode != 0
    assert "one has no node and would form a new cluster, but two, three have one" in done.stdout
    done = looked(site, "two")
    assert done.returncode == 0, done.stdout


def test_no_node_is_formed_beside_one_of_an_earlier_version(site):
    (site.place / "one" / "former").mkdir()
    site.wrote("one", "former/NODE", 500)
    done = looked(site, "one")
    assert done.returncode != 0 and "/one/former has a node" in done.stdout


def test_the_configuration_names_no_number_of_a_node(site):
    # The host that is named first may be one that joined: another number than its own stops it.
    task = next(one for one in yaml.safe_load((TASKS / "config.yml").read_text(encoding="utf-8"))
                if "ansible.builtin.copy" in one)
    done = site.play([
        {"name": "Names", "ansible.builtin.include_role": {
            "name": ROLE, "tasks_from": "names.yml", "public": True}},
        {"name": "Configuration", "vars": task["vars"], "ansible.builtin.copy": {
            "content": "{{ control_config | to_json }}", "dest": "{{ place }}/made", "mode": "0600"}}],
        {"control_hosts": ["two", "one", "three"]})
    assert done.returncode == 0, done.stdout
    made = {host: json.loads((site.place / host / "made").read_text()) for host in HOSTS}
    assert all("node_id" not in one for one in made.values())
    assert made["two"]["cluster"] == "metalmesh" and made["two"]["peers"]["join"] is None
    assert "cluster" not in made["one"] and made["one"]["peers"]["join"] is True
    assert made["three"]["data_dir"] == "/var/lib/metalmesh/control"
