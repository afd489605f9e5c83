"""metalsmith 2.5.0, unchanged, deploys machines of a project, and gives them back.
Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... ironic_metalsmith.py
"""

import contextlib
import io
import json
import logging
import os
import sys
import tempfile

from metalsmith import _cmd

from ironic_calls import IRONIC, wait_until
from ironic_cli import environment
from ironic_world import IMAGE_SHA256, IMAGE_URL, World

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGbPhiQgg7Z6ndVvIPWk7yBRKPUcFZEyKsrGkJFBFRRA ada"


def by_password(project, role):
    """A caller of a project, by the calls of Keystone."""
    return {"OS_AUTH_TYPE": "password", "OS_AUTH_URL": f"{IRONIC}/v3",
            "OS_USERNAME": project.name, "OS_PASSWORD": project.tokens[role],
            "OS_PROJECT_ID": project.id, "OS_USER_DOMAIN_ID": "default",
            "OS_REGION_NAME": "RegionOne"}


def by_cloud_file(folder, project, role):
    """The same without Keystone: a token, and the addresses of both services."""
    cloud = {"auth_type": "admin_token", "auth": {"token": project.tokens[role],
                                                  "endpoint": IRONIC},
             "baremetal_endpoint_override": IRONIC,
             "network_endpoint_override": f"{IRONIC}/v2.0"}
    path = os.path.join(folder, "clouds.yaml")
    with open(path, "w") as file:
        json.dump({"clouds": {"mesh": cloud}}, file)
    return {"OS_CLIENT_CONFIG_FILE": path, "OS_CLOUD": "mesh"}


def run(variables, *words):
    """Exit code and output."""
    argv = ["-f", "json", *words]
    out, err = io.StringIO(), io.StringIO()
    # The first run of a process sets up logging, with a handler that writes to its own stream.
    logging.getLogger().handlers.clear()
    old, sys.argv = sys.argv, ["metalsmith", *argv]
    code = 0
    try:
        with environment(variables), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            _cmd.main(argv)
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv = old
    return code, out.getvalue(), err.getvalue()


def ok(variables, *words):
    code, out, err = run(variables, *words)
    assert not code, f"metalsmith {words}: {err}"
    return json.loads(out or "null")


def deployed(world, machine, variables):
    """A machine of class gold, chosen by an allocation and installed in the project's network."""
    project = world.projects["alpha"]
    with tempfile.NamedTemporaryFile("w", suffix=".pub") as key:
        key.write(KEY)
        key.flush()
        made = ok(variables, "deploy", "--image", IMAGE_URL, "--image-checksum", IMAGE_SHA256,
                  "--resource-class", "gold", "--network", f"{project.name}-net",
                  "--hostname", "web1", "--ssh-public-key", key.name, "--wait", "60")
    assert made["state"] == "active" and made["hostname"] == "web1", made
    (addresses,) = made["ip_addresses"].values()
    assert len(addresses) == 1 and addresses[0].startswith("10.1."), made
    allocation = machine.allocation
    assert allocation["hostname"] == "web1" and allocation["project"] == project.id, allocation
    assert allocation["sshPublicKeys"] == [KEY], allocation
    shown = ok(variables, "show", "web1")["web1"]
    assert shown["ip_addresses"] == made["ip_addresses"], shown
    assert list(ok(variables, "list")) == ["web1"]


def freed(world, machine, variables):
    ok(variables, "undeploy", "web1", "--wait", "60")
    machine.waits()
    member = world.projects["alpha"].as_("member")
    assert member.ok("GET", "/v2.0/ports")["ports"] == []
    assert member.ok("GET", "/v1/allocations")["allocations"] == []
    assert ok(variables, "list") == {}


def refused_and_cleaned_up(world, variables):
    """An image that is not in the catalogue, and one whose checksum is another."""
    member = world.projects["alpha"].as_("member")
    for image, checksum, why in (
            ("http://elsewhere.example/i", IMAGE_SHA256, "image"),
            (IMAGE_URL, "cd" * 32, "checksum")):
        code, _, err = run(variables, "deploy", "--image", image, "--image-checksum", checksum,
                           "--resource-class", "gold", "--network", "alpha-net",
                           "--hostname", "web2")
        assert code and why in err.lower(), f"{why!r} expected: {err}"
        # It takes back what it made.
        wait_until(lambda: member.ok("GET", "/v1/allocations")["allocations"] == [])
        assert member.ok("GET", "/v2.0/ports")["ports"] == []


def strangers(world, variables):
    """Another project sees nothing of it, and cannot allocate it."""
    other = by_password(world.projects["beta"], "admin")
    assert ok(other, "list") == {}
    code, _, err = run(other, "show", "web1")
    assert code and "web1" in err, err
    code, _, err = run(other, "deploy", "--image", IMAGE_URL, "--image-checksum", IMAGE_SHA256,
                       "--resource-class", "gold", "--hostname", "web3")
    assert code, "another project's machine was deployed"
    code, _, err = run(other, "undeploy", "web1")
    assert code, "another project's machine was undeployed"
    assert list(ok(variables, "list")) == ["web1"]


def main():
    world = World("alpha", "beta")
    machine = world.machine("m1", 1)
    world.site.ok("PATCH", f"/v1/nodes/{machine.id}", [
        {"op": "replace", "path": "/owner", "value": world.projects["alpha"].id},
        {"op": "replace", "path": "/resource_class", "value": "gold"}])
    rounds = 0
    with tempfile.TemporaryDirectory() as folder:
        alpha = world.projects["alpha"]
        for variables in (by_password(alpha, "member"), by_cloud_file(folder, alpha, "member")):
            deployed(world, machine, variables)
            strangers(world, variables)
            freed(world, machine, variables)
            refused_and_cleaned_up(world, variables)
            rounds += 1
    print(f"{rounds} deployments")


if __name__ == "__main__":
    main()
