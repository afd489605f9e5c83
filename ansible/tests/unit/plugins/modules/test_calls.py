# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that modules make for a task, against a client that is told what to answer."""
from __future__ import annotations

import importlib

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils import runner
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError

MODULES = "ansible_collections.metalmesh.metalmesh.plugins.modules."
UPDATED = {"updatedAt": "2026-01-01T00:00:00Z"}
LOCK = dict(UPDATED, lockingStrategy="OPTIMISTIC_LOCKING_STRATEGY_CLIENT")
OWNED = {"labels": {"labels": {"ci.metal-stack.io/manager": "ansible"}}}
USED = ApiError("already_exists", "MM-1012 machine of this key was freed", "Create")


class FakeClient:
    """Answers by method; the last answer of a method is repeated."""

    def __init__(self, answers, is_admin=True, dry_run=False):
        self.answers = {name: list(several) for name, several in answers.items()}
        self.calls = []
        self.is_admin = is_admin
        self.dry_run = dry_run

    def call(self, service, method, message=None, headers=None):
        name = "%s.%s" % (service.rsplit(".", 1)[-1], method)
        self.calls.append((service, method, message, headers or {}))
        several = self.answers[name]
        answer = several.pop(0) if len(several) > 1 else several[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def find(self, service, method, message, headers=None):
        answer = self.call(service, method, message, headers)
        return answer

    def writes(self):
        """Calls that change something."""
        return [(method, message) for _service, method, message, _headers in self.calls
                if not method.startswith(("Get", "List"))]


class FakeModule:
    """The part of AnsibleModule that a run needs."""

    def __init__(self, params, check_mode):
        self.params = params
        self.check_mode = check_mode
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)


def run(name, kind, params, answers, check_mode=False, **client_options):
    """Runs a module's handler and returns result, client and module."""
    handler_class = getattr(importlib.import_module(MODULES + name), kind)
    every = {option: spec.get("default") for option, spec in handler_class.argument_spec().items()}
    every.update(params)
    client = FakeClient(answers, dry_run=check_mode, **client_options)
    module = FakeModule(every, check_mode)
    return runner.execute(module, handler_class(client, every)), client, module


def test_a_network_of_a_project_and_one_of_the_site():
    own, site = "metalstack.api.v2.NetworkService", "metalstack.admin.v2.NetworkService"
    for params, service, kind in (
            ({"name": "n", "project": "p"}, own, None),
            ({"name": "n", "type": "super"}, site, "NETWORK_TYPE_SUPER"),
            ({"name": "n", "project": "p", "shared": True}, site, "NETWORK_TYPE_CHILD_SHARED")):
        result, client, _module = run("network", "Network", params, {
            "NetworkService.List": [{}], "NetworkService.Create": [{"network": {"id": "x"}}]})
        assert {call[0] for call in client.calls} == {service}
        assert result["changed"] and result["id"] == "x"
        message = client.writes()[0][1]
        assert message.get("type") == kind
        assert message["labels"]["labels"]["ci.metal-stack.io/manager"] == "ansible"


def test_an_update_names_what_changes_and_locks():
    actual = {"id": "x", "name": "n", "project": "p", "meta": dict(UPDATED, **OWNED)}
    _result, client, _module = run(
        "network", "Network", {"id": "x", "project": "p", "description": "d"},
        {"NetworkService.Get": [{"network": actual}],
         "NetworkService.Update": [{"network": actual}]})
    assert client.writes() == [
        ("Update", {"description": "d", "project": "p", "id": "x", "updateMeta": LOCK})]


def test_the_catalogue_is_created_whole():
    _result, client, _module = run(
        "image", "Image", {"id": "i", "url": "http://x", "features": ["machine"],
                           "labels": {"a": "b"}},
        {"ImageService.Get": [{}], "ImageService.Create": [{"image": {"id": "i"}}]})
    assert client.writes() == [("Create", {"image": {
        "id": "i", "url": "http://x", "features": ["IMAGE_FEATURE_MACHINE"],
        "meta": {"labels": {"labels": {"a": "b"}}}}})]


def test_a_tenant_with_a_login_is_created_and_named():
    made = {"login": "acme", "name": "acme", "meta": UPDATED}
    _result, client, _module = run(
        "tenant", "Tenant", {"name": "Acme Inc", "login": "acme"},
        {"TenantService.Get": [None], "TenantService.Create": [{"tenant": made}],
         "TenantService.Update": [{"tenant": dict(made, name="Acme Inc")}]})
    assert [method for method, _message in client.writes()] == ["Create", "Update"]
    assert client.writes()[1][1] == {"login": "acme", "name": "Acme Inc", "updateMeta": LOCK}


def test_a_pool_keeps_what_the_task_leaves_out():
    pool = {"id": "p", "generation": "3", "description": "d", "publishedLabels": ["a"],
            "policies": [{"name": "x", "allowAll": True}], "labels": {"k": "v"}, "hosts": 2}
    _result, client, _module = run(
        "pool", "Pool", {"id": "p", "reuse_max": "1h"},
        {"PoolService.Get": [{"pool": pool}], "PoolService.Set": [{"pool": pool}]})
    assert client.writes() == [("Set", {"expectedGeneration": "3", "pool": {
        "id": "p", "description": "d", "publishedLabels": ["a"], "labels": {"k": "v"},
        "policies": [{"name": "x", "allowAll": True}], "reuseMax": "3600s"}})]


def test_rules_of_metadata_in_another_order_are_the_same():
    pool = {"id": "p", "generation": "3", "reuseFloor": "metadata",
            "metadata": {"labels": {"keys": ["a", "b"]}, "annotations": {}}}
    task = {"id": "p", "reuse_floor": "metadata", "metadata": {"labels": {"keys": ["b", "a"]}}}
    result, client, _module = run("pool", "Pool", task, {"PoolService.Get": [{"pool": pool}]})
    assert not client.writes() and not result["changed"]


def test_a_host_keeps_its_annotations():
    host = {"machine": "m", "pool": "p", "generation": "2", "annotations": {"cost/center": "4711"}}
    _result, client, _module = run(
        "pool_host", "PoolHost", {"machine": "m", "cordon": "broken"},
        {"PoolService.ListHosts": [{"hosts": [host]}], "PoolService.SetHost": [{"host": host}]})
    assert client.writes() == [("SetHost", {
        "machine": "m", "pool": "p", "annotations": {"cost/center": "4711"}, "cordon": "broken",
        "expectedGeneration": "2"})]


def test_a_claim_sends_its_whole_intent():
    claim = {"uuid": "u", "name": "c", "generation": "2", "status": {"state": "bound"},
             "spec": {"priority": 5, "image": "old", "selector": {"matchLabels": {"a": ""}}}}
    _result, client, _module = run(
        "claim", "Claim", {"name": "c", "project": "p", "image": "", "powered_on": True},
        {"ClaimService.Get": [{"claim": claim}], "ClaimService.Update": [{"claim": claim}]})
    assert client.writes() == [("Update", {
        "project": "p", "claim": "c", "expectedGeneration": "2",
        "spec": {"priority": 5, "selector": {"matchLabels": {"a": ""}}, "poweredOn": True}})]


ALLOCATE = {"name": "m", "project": "p", "image": "debian-12", "networks": ["a"], "ips": ["10.0.0.9"]}


def test_a_used_key_is_followed_by_another_one():
    machine = {"uuid": "u", "allocation": {"name": "m"}}
    _result, client, _module = run("machine", "Machine", ALLOCATE, {
        "MachineService.List": [{}], "IPService.Get": [{"ip": {"network": "b"}}],
        "MachineService.Create": [USED, {"machine": machine}]})
    creates = [call for call in client.calls if call[1] == "Create"]
    assert creates[0][2] == creates[1][2]
    assert creates[0][3]["Idempotency-Key"] != creates[1][3]["Idempotency-Key"]
    assert creates[0][2]["networks"] == [{"network": "a"}, {"network": "b", "ips": ["10.0.0.9"]}]


def test_a_free_machine_of_the_project_is_allocated_by_its_id():
    free = {"uuid": "u"}
    result, client, _module = run(
        "machine", "Machine", dict(ALLOCATE, id="u", ips=[]),
        {"MachineService.Get": [{"machine": free}], "MachineService.Create": [{"machine": free}]})
    assert result["changed"] and client.writes()[0][1]["uuid"] == "u"


def test_the_module_of_the_other_kind_is_named():
    firewall = {"uuid": "u", "allocation": {
        "name": "m", "allocationType": "MACHINE_ALLOCATION_TYPE_FIREWALL"}}
    with pytest.raises(Refusal, match="is a firewall"):
        run("machine", "Machine", ALLOCATE, {"MachineService.List": [{"machines": [firewall]}]})


@pytest.mark.parametrize("code,raises", [
    ("not_found", False), ("failed_precondition", False), ("permission_denied", True),
    ("invalid_argument", True)])
def test_a_refused_dry_run(code, raises):
    answers = {"IPService.List": [{}], "IPService.Create": [ApiError(code, "no", "Create")]}
    params = {"name": "a", "project": "p", "network": "n"}
    if raises:
        with pytest.raises(ApiError):
            run("ip", "Address", params, answers, check_mode=True)
        return
    result, _client, module = run("ip", "Address", params, answers, check_mode=True)
    assert result["changed"] and "dry run was refused" in module.warnings[0]


def test_secrets_of_dry_runs_are_not_returned():
    answers = {"TokenService.List": [{}],
               "TokenService.Create": [{"token": {"uuid": "t"}, "secret": "s"}]}
    params = {"description": "d", "expires": "8h"}
    assert run("token", "Token", params, answers)[0]["secret"] == "s"
    assert "secret" not in run("token", "Token", params, answers, check_mode=True)[0]


def test_two_of_one_name_are_refused():
    several = [{"uuid": "1", "name": "w"}, {"uuid": "2", "name": "w"}]
    with pytest.raises(Refusal, match="1, 2; give its id or tenant"):
        run("project", "Project", {"name": "w"}, {"ProjectService.List": [{"projects": several}]})


def test_a_project_goes_to_the_callers_own_tenant():
    _result, client, _module = run("project", "Project", {"name": "w"}, {
        "ProjectService.List": [{}], "ProjectService.Create": [{"project": {"uuid": "1"}}],
        "UserService.Get": [{"user": {"defaultTenant": {"login": "maya"}}}]}, is_admin=False)
    assert client.writes()[0][1]["login"] == "maya"
