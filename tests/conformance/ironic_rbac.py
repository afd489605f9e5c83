"""Ironic's own cases of access control (39.0.0), over the wire. They are read from the installed
package, which is fetched for the test; nothing of them is kept here.

A case names a caller, a request and a status. 503 there means that the caller is authorised and a
conductor would be asked: here any status but 401, 403, 404 and a fault will do. 500 means a token
of the wrong scope: 403 here. Any other status has to be the same.

Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... ironic_rbac.py
"""

import importlib.metadata
import json
import re

import yaml

from ironic_calls import Ironic
from ironic_rbac_fixture import Fixture

FILES = ("test_rbac_project_scoped.yaml", "test_rbac_system_scoped.yaml")
# Lists that have the same rows here. A history and volumes have not.
COUNTED = ("nodes", "ports", "portgroups", "allocations", "children")
# Cases with another answer, and the reason.
DIFFERENT = {
    "third_party_admin_cannot_patch_runbook_owner":
        (404, "a runbook that the caller does not see is not found"),
    "third_party_admin_cannot_patch_runbook_public":
        (404, "a runbook that the caller does not see is not found"),
}


def cases(name):
    """The cases of a file by their names; the first entry has texts that the others refer to."""
    package = importlib.metadata.distribution("ironic")
    path = package.locate_file(f"ironic/tests/unit/api/{name}")
    found = yaml.safe_load(open(path))
    found.pop("values")
    return found


def skipped(case):
    """The reason for which a case cannot be run, or none."""
    if case.get("skip_reason"):
        return "skipped by Ironic as well"
    if not case.get("headers") or case.get("assert_status") is None:
        return "has no caller or no status"
    if case.get("self_manage_nodes") is False or case.get("enable_service_project"):
        return "needs another setting of the server"
    if "/volume" in case["path"]:
        return "is about volumes, which machines do not have"
    return None


def expected(name, case):
    if name in DIFFERENT:
        return DIFFERENT[name][0]
    return {500: 403}.get(case["assert_status"], case["assert_status"])


def is_as_expected(wanted, status):
    # A node of the published fixture is reserved, which 409 stands for.
    if wanted in (503, 409):
        return status not in (401, 403, 404) and status < 500
    return status == wanted


def filled(value, names, texts):
    """A path or a body with the fixture's ids, and the ids of our projects."""
    if isinstance(value, str):
        value = re.sub(r"\{(\w+)\}", lambda found: names[found.group(1)], value)
        return texts.get(value, value)
    if isinstance(value, list):
        return [filled(one, names, texts) for one in value]
    if isinstance(value, dict):
        return {key: filled(one, names, texts) for key, one in value.items()}
    return value


def check_content(case, answer, is_project, names, texts):
    """List lengths and masks, where the fixtures are the same."""
    wrong = []
    if is_project:
        for name, length in (case.get("assert_list_length") or {}).items():
            if name in COUNTED and len(answer.json[name]) != length:
                wrong.append(f"{len(answer.json[name])} {name}, {length} expected")
    for name, value in (case.get("assert_dict_contains") or {}).items():
        text = json.dumps(value)
        if "Redacted" not in text and name not in ("driver", "resource_class"):
            continue
        value = filled(value, names, texts)
        if answer.json[name] != value:
            wrong.append(f"{name} is {answer.json[name]!r}, {value!r} expected")
    return wrong


def run(fixture, file, counts):
    names, texts = fixture.names, fixture.texts
    is_project = "project" in file
    differences = []
    for name, case in cases(file).items():
        reason = skipped(case)
        if reason:
            counts[reason] = counts.get(reason, 0) + 1
            continue
        path = filled(case["path"], names, texts)
        body = filled(case.get("body"), names, texts)
        caller = Ironic(fixture.token(case["headers"]))
        verb = case.get("method", "get").upper()
        answer = caller.ask(verb, path, body)
        wanted = expected(name, case)
        counts[file] = counts.get(file, 0) + 1
        wrong = []
        if not is_as_expected(wanted, answer.status):
            wrong.append(f"{wanted} expected")
        elif answer.status == 200:
            wrong += check_content(case, answer, is_project, names, texts)
        if wrong:
            differences.append(f"{name}: {verb} {path} {body}: {', '.join(wrong)}: {answer}")
        if verb != "GET" and answer.status < 300:
            fixture.repair(answer)
    return differences


def main():
    fixture = Fixture()
    counts, differences = {}, []
    for file in FILES:
        differences += run(fixture, file, counts)
    for difference in differences:
        print(difference)
    for what, count in sorted(counts.items()):
        print(f"  {count} {what}")
    assert not differences, f"{len(differences)} cases differ"
    project, system = (counts[file] for file in FILES)
    print(f"{project} cases of projects, {system} cases of the site")


main()
