# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Rules that hold for the tasks of all roles: secrets, quotes, and what users may set."""
from __future__ import annotations

import pathlib
import re

import pytest
import yaml

COLLECTION = pathlib.Path(__file__).parents[3]
ROLES = sorted(path.name for path in (COLLECTION / "roles").iterdir())
# Values that are secrets, in templates.
SECRET = re.compile(r"_token\b(?!_)|\.secret\b|\.invitation\b|bmc_login|password|private_key")
# Options of modules that their argument_spec keeps from logs.
KEPT = {"api_token"}
# Modules that return secrets.
RETURN_SECRETS = {"metalmesh.metalmesh.join_ticket", "metalmesh.metalmesh.token", "metalmesh.metalmesh.component"}
# What follows from other defaults, and is not to be set.
DERIVED = {"control_accepted", "upgrade_staged_package", "upgrade_staged_cli_package", "upgrade_staged_program",
           "upgrade_cli"}
# Keywords of tasks; the key that is none of them is the module.
KEYWORDS = {
    "name", "when", "register", "vars", "loop", "loop_control", "no_log", "changed_when", "failed_when",
    "delegate_to", "run_once", "become", "notify", "check_mode", "environment", "until", "retries", "delay",
    "throttle", "ignore_errors", "any_errors_fatal", "block", "always", "rescue", "diff"}
# Names in conditions that are true or false.
TRUTHS = {"ansible_check_mode", "false", "true"}


def read(path):
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def flat(tasks):
    """Tasks with those of their blocks."""
    for task in tasks or []:
        yield task
        for part in ("block", "always", "rescue"):
            yield from flat(task.get(part))


def tasks_of(role):
    """All tasks and handlers of a role, as (place, module, arguments, task)."""
    for path in sorted((COLLECTION / "roles" / role).glob("*/*.yml")):
        if path.parent.name not in ("tasks", "handlers"):
            continue
        for task in flat(read(path)):
            place = "%s: %s" % (path.relative_to(COLLECTION), task["name"])
            for module in set(task) - KEYWORDS:
                yield place, module, task[module], task


def carries_secret(arguments):
    """True if one of a module's arguments has a secret."""
    if not isinstance(arguments, dict):
        return bool(SECRET.search(str(arguments)))
    return any(SECRET.search(str(value)) for name, value in arguments.items() if name not in KEPT)


@pytest.mark.parametrize("role", ROLES)
def test_secrets_of_tasks(role):
    for place, module, arguments, task in tasks_of(role):
        name = module.rsplit(".", 1)[-1]
        assert name != "set_fact" or not carries_secret(arguments), place
        assert not SECRET.search(str(task.get("environment", ""))), place
        if name in ("command", "shell"):
            given = dict(arguments, stdin="") if isinstance(arguments, dict) else arguments
            assert not carries_secret(given), place
        # Assertions show their condition alone.
        if name in ("assert", "include_role", "include_tasks", "import_tasks"):
            continue
        if carries_secret(arguments) or module in RETURN_SECRETS:
            assert task.get("no_log") is True, place
        if name in ("copy", "template") and carries_secret(arguments):
            assert arguments["mode"] == "0600", place


@pytest.mark.parametrize("role", ROLES)
def test_certificates_are_validated(role):
    for path in (COLLECTION / "roles" / role).rglob("*.*"):
        if path.suffix in (".yml", ".j2"):
            text = path.read_text(encoding="utf-8")
            assert "validate_certs" not in text and "insecure" not in text.lower(), path


@pytest.mark.parametrize("role", ROLES)
def test_files_have_a_mode_and_what_the_shell_reads_is_quoted(role):
    for place, module, arguments, _task in tasks_of(role):
        name = module.rsplit(".", 1)[-1]
        if name in ("copy", "template") or name == "file" and arguments.get("state") == "directory":
            assert re.fullmatch("0[0-7]{3}|{{ item.mode }}", arguments["mode"]), place
        if name == "shell":
            assert all("quote" in part for part in re.findall(r"{{(.*?)}}", arguments["cmd"])), place
        validate = arguments.get("validate", "") if isinstance(arguments, dict) else ""
        assert all("quote" in part for part in re.findall(r"{{(.*?)}}", validate)), place
    for path in (COLLECTION / "roles" / role).glob("templates/*.sh.j2"):
        for part in re.findall(r"{{(.*?)}}", path.read_text(encoding="utf-8")):
            assert "quote" in part or "| int" in part, (path, part)
    # Variables of an environment go through the filter that quotes them.
    for path in (COLLECTION / "roles" / role / "tasks").glob("*.yml"):
        assert "}}={{" not in path.read_text(encoding="utf-8").replace(" ", ""), path


@pytest.mark.parametrize("role", ROLES)
def test_conditions_are_truths_and_no_values(role):
    # ansible-core refuses a condition whose result is a list or a dictionary. A name alone is one of either.
    for place, _module, arguments, task in tasks_of(role):
        that = arguments.get("that") if isinstance(arguments, dict) else None
        for condition in [that, task.get("when"), task.get("failed_when"), task.get("until")]:
            for line in condition if isinstance(condition, list) else [condition or "true"]:
                for part in re.split(r"\b(?:and|or|(?<!is )not)\b", str(line)):
                    name = part.strip(" ()\n")
                    assert not re.fullmatch("[a-z_]+", name) or name in TRUTHS, (place, line)


@pytest.mark.parametrize("role", ROLES)
def test_what_users_may_set_is_specified(role):
    defaults = read(COLLECTION / "roles" / role / "defaults/main.yml")
    options = read(COLLECTION / "roles" / role / "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert set(defaults) - DERIVED == set(defaults) & set(options)
    for name, option in options.items():
        if "default" in option:
            assert option["default"] == defaults[name], name


def test_an_upgrade_looks_at_every_voter_before_and_after_each_node():
    tasks = COLLECTION / "roles/upgrade/tasks"
    whole = {"name": "metalmesh.metalmesh.control", "tasks_from": "whole.yml"}
    assert read(tasks / "step.yml")[0]["ansible.builtin.include_role"] == whole
    assert read(tasks / "node.yml")[-1]["ansible.builtin.include_role"] == whole


@pytest.mark.parametrize("role", ["control", "upgrade"])
def test_no_other_node_is_touched_after_a_failure(role):
    tasks = read(COLLECTION / "roles" / role / "tasks/main.yml")
    assert [task.get("any_errors_fatal") for task in tasks] == [True]
    for playbook, host in (("site", "control"), ("upgrade", "control"), ("site", "switches")):
        plays = read(COLLECTION / "playbooks" / (playbook + ".yml"))
        assert [play["any_errors_fatal"] for play in plays if play["hosts"] == host] == [True]


def test_the_directory_of_control_is_that_of_its_unit():
    assert read(COLLECTION / "roles/control/defaults/main.yml")["control_data_dir"] == "/var/lib/metalmesh/control"
