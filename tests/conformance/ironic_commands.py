"""Every command of `baremetal` (python-ironicclient 6.3.0): it does its work, or is refused with
the reason. Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=... ironic_commands.py
"""

import json
import os
import tempfile
import uuid

from ironic_calls import wait_until
from ironic_cli import COMMANDS, Cli, by_token, never_run
from ironic_world import IMAGE_SHA256, IMAGE_URL, World

STEPS = json.dumps([{"interface": "bios", "step": "apply", "args": {}, "priority": 10}])
RUNBOOK = json.dumps([{"interface": "bios", "step": "apply", "args": {}, "order": 1}])
ERASE = json.dumps([{"interface": "deploy", "step": "erase_devices"}])
UNKNOWN = str(uuid.UUID(int=7))
NOT_THERE = "could not be found"
UNSUPPORTED = "does not support"


def site(cli):
    """Drivers, conductors, chassis, templates, shards."""
    names = [row["name"] for row in cli.json("driver list")]
    assert "metalmesh" in names, names
    shown = cli.json("driver show metalmesh")
    assert shown["default_power_interface"] == "metalmesh", shown
    assert cli.json("driver property list metalmesh")
    cli.refused("driver raid property list metalmesh", UNSUPPORTED)
    cli.ok("driver passthru list metalmesh")
    cli.refused("driver passthru call metalmesh noop", UNSUPPORTED)
    cli.refused("driver show nonsense", "could not find the following driver")
    conductors = cli.json("conductor list")
    assert conductors[0]["alive"] is True, conductors
    assert cli.json(f"conductor show {conductors[0]['hostname']}")["drivers"]
    chassis = cli.json("chassis create --description hall --extra a=1")["uuid"]
    assert [row["uuid"] for row in cli.json("chassis list")] == [chassis]
    cli.ok(f"chassis set {chassis} --description 'hall 2' --extra b=2")
    cli.ok(f"chassis unset {chassis} --extra a")
    shown = cli.json(f"chassis show {chassis}")
    assert shown["description"] == "hall 2" and shown["extra"] == {"b": 2}, shown
    cli.ok(f"chassis delete {chassis}")
    cli.refused(f"chassis show {chassis}", NOT_THERE)
    cli.ok(f"deploy template create CUSTOM_T --steps '{STEPS}'")
    assert [row["name"] for row in cli.json("deploy template list")] == ["CUSTOM_T"]
    cli.ok("deploy template set CUSTOM_T --extra a=1 --name CUSTOM_U")
    cli.ok("deploy template unset CUSTOM_U --extra a")
    assert cli.json("deploy template show CUSTOM_U")["extra"] == {}
    cli.ok("deploy template delete CUSTOM_U")
    assert cli.json("shard list")[0]["name"] == "None"


def runbooks(cli):
    cli.ok(f"runbook create --name book --steps '{RUNBOOK}'")
    cli.ok("runbook trait add book CUSTOM_A CUSTOM_B")
    cli.ok("runbook trait remove book CUSTOM_A")
    assert "CUSTOM_B" in cli.ok("runbook trait list book")
    cli.ok("runbook set book --description 'a book' --extra a=1")
    cli.ok("runbook unset book --extra a")
    shown = cli.json("runbook show book")
    assert shown["description"] == "a book" and shown["extra"] == {}, shown
    assert len(cli.json("runbook list")) == 1
    cli.ok("runbook delete book")


def parts_that_are_not_there(cli, node):
    """Volumes and inspection rules."""
    assert cli.json("inspection rule list") == []
    actions = json.dumps([{"op": "set-attribute", "args": {"path": "/extra/a", "value": 1}}])
    cli.refused(f"inspection rule create --actions '{actions}'", UNSUPPORTED)
    for verb in ("show", "set --description d", "unset --description", "delete"):
        words = verb.split(" ", 1)
        cli.refused(f"inspection rule {words[0]} {UNKNOWN} {' '.join(words[1:])}".strip(), "")
    for kind in ("connector", "target"):
        assert cli.json(f"volume {kind} list") == []
        cli.refused(f"volume {kind} show {UNKNOWN}", NOT_THERE)
        cli.refused(f"volume {kind} set {UNKNOWN} --extra a=1", NOT_THERE)
        cli.refused(f"volume {kind} unset {UNKNOWN} --extra a", NOT_THERE)
        cli.refused(f"volume {kind} delete {UNKNOWN}", "")
    cli.refused(f"volume connector create --node {node} --type iqn --connector-id iqn.x",
                UNSUPPORTED)
    cli.refused(f"volume target create --node {node} --type iscsi --boot-index 0 --volume-id v",
                UNSUPPORTED)


def records(cli, world, machine):
    """Nodes as records: made, listed, changed, deleted."""
    owner = world.projects["alpha"].id
    secret = "--driver-info redfish_address=https://10.0.0.9 --driver-info redfish_password=x"
    made = cli.json("node create --driver metalmesh --name kn1 --resource-class rc1 "
                    f"--owner {owner} {secret} --extra rack=7 --property cpus=4")
    assert made["owner"] == owner and made["provision_state"] == "enroll", made
    assert made["driver_info"]["redfish_password"] == "******", made
    # By a field that every node has: the client sorts by itself, and cannot sort a name that is missing.
    for more in ("", "--long", "--fields uuid name owner", f"--owner {owner}", "--maintenance",
                 "--provision-state enroll", "--limit 1", "--sort uuid:desc", "--unassociated",
                 "--resource-class rc1", "--driver metalmesh"):
        cli.json(f"node list {more}")
    assert [row["name"] for row in cli.json(f"node list --owner {owner}")] == ["kn1"]
    cli.ok("node set kn1 --name kn2 --description text --extra a=1 --instance-info b=2 "
           "--property memory_mb=1024 --resource-class rc2 --conductor-group g")
    cli.ok("node unset kn2 --extra a --description --conductor-group")
    shown = cli.json("node show kn2")
    assert shown["extra"] == {"rack": 7} and shown["resource_class"] == "rc2", shown
    assert shown["instance_info"] == {"b": 2} and shown["description"] is None, shown
    cli.ok(f"node children list {machine.id}")
    cli.ok("node delete kn2")
    cli.refused("node show kn2", NOT_THERE)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "all.json")
        with open(path, "w") as file:
            json.dump({"chassis": [{"description": "c", "nodes": [
                {"driver": "metalmesh", "name": "kn3"}]}]}, file)
        cli.ok(f"create {path}")
    chassis = cli.json("chassis list")[0]["uuid"]
    assert [row["name"] for row in cli.json(f"node list --chassis {chassis}")] == ["kn3"]
    cli.ok("node delete kn3")
    cli.ok(f"chassis delete {chassis}")


def hardware(cli, machine):
    """Observations of a machine, and what its BMC is ordered."""
    node = machine.id
    cli.json(f"node validate {node}")
    cli.ok(f"node maintenance set {node} --reason test")
    assert cli.json(f"node show {node}")["maintenance_reason"] == "test"
    cli.ok(f"node maintenance unset {node}")
    settings = [row["name"] for row in cli.json(f"node bios setting list {node}")]
    assert "bios_version" in settings, settings
    cli.json(f"node bios setting show {node} bios_version")
    cli.json(f"node firmware list {node}")
    history = cli.json(f"node history list {node}")
    assert history, "a machine has a history"
    cli.ok(f"node history get {node} {history[0]['uuid']}")
    assert "inventory" in cli.ok(f"node inventory save {node}")
    cli.json(f"node boot device show {node}")
    cli.ok(f"node boot device set {node} pxe")
    wait_until(lambda: "BOOT_FROM_PXE" in machine.orders, "the boot device is set")
    cli.ok(f"node power off {node}")
    wait_until(lambda: "OFF" in machine.orders, "the power is off")
    cli.ok(f"node power on {node}")
    wait_until(lambda: "ON" in machine.orders, "the power is on")
    machine.waits()
    cli.ok(f"node reboot {node}")
    wait_until(lambda: {"RESET", "CYCLE"} & set(machine.orders), "the machine reboots")
    machine.waits()
    cli.ok(f"node trait add {node} CUSTOM_A CUSTOM_B")
    cli.ok(f"node add trait {node} CUSTOM_C")
    cli.ok(f"node trait remove {node} CUSTOM_B")
    cli.ok(f"node remove trait {node} CUSTOM_C")
    assert "CUSTOM_A" in cli.ok(f"node trait list {node}")
    for line in ("boot mode set {} uefi", "secure boot on {}", "secure boot off {}",
                 "inject nmi {}", "console enable {}", "console disable {}"):
        cli.refused("node " + line.format(node), UNSUPPORTED)
    cli.either(f"node console show {node}")
    cli.ok(f"node passthru list {node}")
    cli.refused(f"node passthru call {node} noop", UNSUPPORTED)


def ports(cli, world, machine):
    node, network = machine.id, world.projects["alpha"].network
    made = cli.json(f"port create 52:54:00:00:01:01 --node {node} --physical-network p1 "
                    "--extra a=1")
    port = made["uuid"]
    for more in ("", "--long", f"--node {node}", "--fields uuid address"):
        cli.json(f"port list {more}")
    cli.ok(f"port set {port} --extra b=2 --description text")
    cli.ok(f"port unset {port} --extra a")
    assert cli.json(f"port show {port}")["extra"] == {"b": 2}
    cli.ok(f"port group create --node {node} --name pg1 --address 52:54:00:00:01:02")
    cli.json("port group list")
    cli.ok("port group set pg1 --mode 802.3ad --extra a=1")
    cli.ok("port group unset pg1 --extra a")
    assert cli.json("port group show pg1")["mode"] == "802.3ad"
    cli.ok("port group delete pg1")
    cli.ok(f"node vif attach {node} {network}")
    assert network in cli.ok(f"node vif list {node}")
    cli.ok(f"node vif detach {node} {network}")
    cli.ok(f"port delete {port}")


def allocations(cli, machine):
    node = machine.id
    cli.ok(f"node set {node} --resource-class gold")
    cli.ok("allocation create --resource-class gold --name al1 --trait CUSTOM_A "
           f"--candidate-node {node} --extra a=1 --wait")
    made = cli.json("allocation show al1")
    assert made["state"] == "active" and made["node_uuid"] == node, made
    for more in ("", "--long", "--resource-class gold", "--state active", f"--node {node}"):
        assert len(cli.json(f"allocation list {more}")) == 1, more
    cli.ok("allocation set al1 --extra q=1")
    cli.ok("allocation unset al1 --extra a")
    assert cli.json("allocation show al1")["extra"] == {"q": 1}
    cli.ok("allocation delete al1")


def life(cli, world, machine):
    """From available to active and back, and the verbs that are refused."""
    node = machine.id
    cli.ok(f"node manage {node} --wait 60")
    cli.ok(f"node inspect {node} --wait 60")
    cli.ok(f"node clean {node} --clean-steps '{ERASE}' --wait 60")
    cli.refused(f"node rescue {node} --rescue-password s3cret", "")
    if cli.either(f"node adopt {node}"):
        wait_until(lambda: machine.node()["provision_state"] in ("adopt failed", "manageable"))
        if machine.node()["provision_state"] == "adopt failed":
            cli.ok(f"node manage {node} --wait 60")
    cli.ok(f"node provide {node} --wait 60")
    for verb in ("abort", "unhold", "unrescue", "service", "rebuild"):
        cli.refused(f"node {verb} {node}" + (f" --service-steps '{ERASE}'" * (verb == "service")),
                    "")
    cli.refused(f"node deploy {node}", "")
    project = world.projects["alpha"]
    cli.ok(f"node set {node} --owner {project.id}")
    cli.ok(f"node set {node} --instance-info image_source={IMAGE_URL} "
           f"--instance-info image_checksum={IMAGE_SHA256}")
    cli.ok(f"node vif attach {node} {project.network}")
    cli.ok(f"node deploy {node} --wait 60")
    shown = cli.json(f"node show {node}")
    assert shown["provision_state"] == "active", shown
    cli.refused(f"node rescue {node} --rescue-password s3cret", UNSUPPORTED)
    cli.ok(f"node undeploy {node} --wait 60")
    assert cli.json(f"node show {node}")["provision_state"] == "available"


def main():
    world = World("alpha")
    cli = Cli(by_token(world.tokens["admin"]))
    machine = world.machine("m1", 1)
    site(cli)
    runbooks(cli)
    records(cli, world, machine)
    hardware(cli, machine)
    parts_that_are_not_there(cli, machine.id)
    ports(cli, world, machine)
    allocations(cli, machine)
    life(cli, world, machine)
    assert never_run() == [], never_run()
    print(f"{len(COMMANDS)} commands, {Cli.runs} runs")


main()
