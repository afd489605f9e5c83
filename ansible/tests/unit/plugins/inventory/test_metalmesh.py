# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Inventories that ansible-inventory reads, from an API whose tenants and racks have hostile names."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

# The folder that has ansible_collections.
COLLECTIONS = pathlib.Path(__file__).parents[7]
PROJECT = "00000000-0000-4000-8000-0000000000aa"
TEMPLATE = "{{ lookup('pipe', 'touch %s') }}"


def uuid(number):
    """The UUID of a machine."""
    return "00000000-0000-4000-8000-00000000000%d" % number


def plain(value):
    """A text without the mark of one that is no template."""
    return value.get("__ansible_unsafe", value)


def machine(number, name, rack="rack-1", description=""):
    """A machine whose tenant has given it a name, and whose leaf is in a rack."""
    return {"uuid": uuid(number), "rack": rack, "partition": {"id": "fra-1"}, "size": {"id": "c1"},
            "allocation": {
                "project": PROJECT, "hostname": name, "description": description,
                "userdata": "c2VjcmV0", "image": {"id": "debian-12"},
                "meta": {"labels": {"labels": {"ci.metal-stack.io/manager": "ansible", "role": "db"}}},
                "networks": [{"network": "internet", "ips": ["198.51.100.%d" % number]}]}}


MACHINES = [machine(1, "localhost"), machine(2, "control-1"), machine(3, "web-1", rack="control"),
            machine(4, "databases", rack="web-1")]


class Api(ThreadingHTTPServer):
    """Lists machines, of all projects or of one."""

    def __init__(self, machines):
        super().__init__(("127.0.0.1", 0), Handler)
        self.machines = machines
        self.called = []

    @property
    def url(self):
        """Where it is."""
        return "http://127.0.0.1:%d" % self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    """One call."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        service, method = self.path.split("/")[-2:]
        self.server.called.append(service)
        answer = {"adminRole": "ADMIN_ROLE_EDITOR"} if method == "TokenScopedList" else {}
        if service.endswith(".ProjectService"):
            answer = {"projects": [{"uuid": PROJECT, "tenant": "acme"}]}
        elif service.endswith(".MachineService"):
            answer = {"machines": self.server.machines}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """Nothing is logged."""


@pytest.fixture(name="api")
def _api():
    api = Api(list(MACHINES))
    thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield api
    api.shutdown()
    api.server_close()
    thread.join()


@pytest.fixture(name="site")
def _site(tmp_path, api):
    tmp_path.chmod(0o700)
    return Site(tmp_path, api)


class Site:
    """A folder of inventories."""

    def __init__(self, folder, api):
        self.folder = folder
        self.static = folder / "static.yml"
        self.static.write_text(json.dumps({
            "control": {"hosts": {"control-1": {"ansible_host": "10.0.0.1", "ansible_user": "root"}}},
            "databases": {"hosts": {"db-1": {}}}}))
        self.options = {"plugin": "metalmesh.metalmesh.metalmesh", "api_url": api.url, "api_token": "t"}

    def run(self, program, *arguments, is_last=True, **options):
        """Runs a program with the operator's own inventory and that of the API."""
        dynamic = self.folder / "site.metalmesh.yml"
        dynamic.write_text(json.dumps(dict(self.options, **options)))
        sources = [self.static, dynamic] if is_last else [dynamic, self.static]
        environment = dict(
            os.environ, ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS), ANSIBLE_HOME=str(self.folder / "home"),
            ANSIBLE_NOCOLOR="1", ANSIBLE_DEVEL_WARNING="false", PYTHONDONTWRITEBYTECODE="1")
        command = [sys.executable, "-m", "ansible", program]
        for source in sources:
            command += ["-i", str(source)]
        return subprocess.run(command + list(arguments), env=environment, cwd=self.folder, text=True,
                              capture_output=True, timeout=120, check=False)

    def listed(self, **options):
        """The inventory, and what was said about it."""
        done = self.run("inventory", "--list", **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout, object_hook=plain), " ".join(done.stderr.split())


@pytest.mark.parametrize("is_last", [True, False])
def test_no_machine_takes_the_place_of_another_host(site, is_last):
    found, _said = site.listed(is_last=is_last)
    hosts = found["_meta"]["hostvars"]
    assert set(hosts) == {"control-1", uuid(1), uuid(2), uuid(3), uuid(4)}
    assert hosts["control-1"] == {"ansible_host": "10.0.0.1", "ansible_user": "root"}
    assert found["control"]["hosts"] == ["control-1"]
    assert found["metalmesh_rack_control"]["hosts"] == [uuid(3)]
    assert sorted(found["metalmesh_machines"]["hosts"]) == [uuid(number) for number in range(1, 5)]
    assert hosts[uuid(1)]["ansible_host"] == "198.51.100.1"
    assert "userdata" not in hosts[uuid(1)]["metalmesh_machine"]["allocation"]


def test_published_names_are_refused_where_they_are_those_of_other_hosts(site):
    found, said = site.listed(compat="metal", reserved_names=["gitlab"])
    hosts = found["_meta"]["hostvars"]
    assert set(hosts) == {"control-1", uuid(1), uuid(2), "web-1", uuid(4)}
    assert hosts["control-1"]["ansible_host"] == "10.0.0.1"
    assert found["control"]["hosts"] == ["control-1"]
    assert sorted(found["fra-1"]["hosts"]) == [uuid(1), uuid(2), uuid(4), "web-1"]
    assert found["metal"]["hosts"] == found["fra-1"]["hosts"]
    assert "is not called 'localhost'" in said and "no group is called 'control'" in said


def test_two_files_of_machines_share_them(site, api):
    other = site.folder / "other.metalmesh.yml"
    other.write_text(json.dumps(dict(site.options, compat="metal")))
    site.static.unlink()
    site.static = other
    found, _said = site.listed(compat="metal")
    assert "web-1" in found["fra-1"]["hosts"]


def test_only_who_asks_for_it_gets_the_machines_of_all_projects(site, api):
    site.listed()
    assert "metalstack.admin.v2.MachineService" not in api.called
    site.listed(all_projects=True)
    assert "metalstack.admin.v2.MachineService" in api.called


def test_keyed_groups_need_a_prefix(site):
    key = "metalmesh_machine.allocation.meta.labels.role"
    done = site.run("inventory", "--list", keyed_groups=[{"key": key}], leading_separator=False)
    assert "has no prefix" in " ".join(done.stderr.split()) and uuid(1) not in done.stdout


def cached(site):
    """Options of a cache in a folder."""
    return {"cache": True, "cache_plugin": "jsonfile", "cache_connection": str(site.folder / "cache")}


def test_a_cache_is_private_and_has_no_user_data(site):
    site.listed(**cached(site))
    cache = site.folder / "cache"
    assert cache.stat().st_mode & 0o077 == 0
    texts = [path.read_text() for path in cache.iterdir()]
    assert len(texts) == 1 and uuid(1) in texts[0] and "c2VjcmV0" not in texts[0]


def test_a_cache_that_others_may_write_is_refused(site):
    cache = site.folder / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    done = site.run("inventory", "--list", **cached(site))
    assert "is open to other users" in " ".join(done.stderr.split()) and uuid(1) not in done.stdout
    assert not list(cache.iterdir())


def test_a_template_in_the_cache_is_a_text(site):
    site.listed(**cached(site))
    path = next((site.folder / "cache").iterdir())
    proof = site.folder / "proof"
    content = json.loads(path.read_text())
    text = TEMPLATE % proof
    trusted = {"__ansible_type": "_AnsibleTaggedStr", "value": text,
               "tags": [{"__ansible_type": "TrustedAsTemplate"}]}
    payload = content.get("__payload__", content)
    payload = json.loads(payload) if isinstance(payload, str) else payload
    for one in payload["machines"]:
        one["allocation"]["description"] = trusted
    if "__payload__" in content:
        as_text = isinstance(content["__payload__"], str)
        content["__payload__"] = json.dumps(payload) if as_text else payload
    path.write_text(json.dumps(content))
    done = site.run("adhoc", uuid(1), "-c", "local", "-m", "ansible.builtin.debug",
                    "-a", "msg={{ metal_description }}", **cached(site))
    assert "lookup" in done.stdout and not proof.exists(), done.stderr
