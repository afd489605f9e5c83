"""Answers that published clients found wrong: fields that were lost or respelled, commands
that were done twice, addresses that nobody could free. Each story goes through the published client.

Usage: ADMIN_TOKEN=... answers.py http://127.0.0.1:PORT
"""

import os
import queue
import sys
import threading

from connectrpc.code import Code

import metalstack.admin.v2.task_pb2 as task_pb
import metalstack.api.v2.health_pb2 as health_pb
from caller import HOUR, NEWEST, PATIENCE_S, Caller, refused
from contract import COMBINATIONS
from estate import Estate
from things import as_dict



def open_stream(site, name, told):
    """Opens a stream of BMC commands; what it is told is put into a queue with its name."""
    orders = site.agent.listen("infra.BMCService/WaitForBMCCommand", partition=site.tag)

    def put_each():
        for order in orders:
            told.put((name, order))

    threading.Thread(target=put_each, daemon=True).start()


def ordered(site, node, command):
    """The id of an order to a machine's BMC."""
    return site.admin("admin.MachineService/BMCCommand", uuid=node,
                      command=f"MACHINE_BMC_COMMAND_{command}").task_id


def task_state(site, task):
    found = site.admin("admin.TaskService/Get", taskId=task, queue="default").task
    return task_pb.TaskState.Name(found.state).removeprefix("TASK_STATE_")


def done(site, told, task):
    """The stream that is told an order, which is then done."""
    name, order = told.get(timeout=PATIENCE_S)
    assert order.command_id == task, f"{order.command_id} was told, not {task}"
    assert task_state(site, task) == "ACTIVE", task_state(site, task)
    site.agent("infra.BMCService/BMCCommandDone", commandId=task)
    assert task_state(site, task) == "COMPLETED", task_state(site, task)
    return name


def one_stream_gets_a_command(site):
    """Of two streams of a partition one gets each command, which is pending until then."""
    told = queue.Queue()
    first = ordered(site, site.idle, "CYCLE")
    assert task_state(site, first) == "PENDING", task_state(site, first)
    open_stream(site, "one", told)
    done(site, told, first)
    open_stream(site, "two", told)
    for node, command in ((site.idle, "CYCLE"), (site.fire, "IDENTIFY_LED_ON"),
                          (site.node, "RESET"), (site.idle, "IDENTIFY_LED_OFF")):
        done(site, told, ordered(site, node, command))
    # The last one was told after all others: a second copy of any would be there by now.
    assert told.empty(), told.get_nowait()


def reports_keep_their_spelling(site):
    """Power state and LED of a BMC's report are shown as they were told."""
    bmc = {**site.bmc(1), "powerState": "OFF"}
    site.agent("infra.BMCService/UpdateBMCInfo", partition=site.tag, bmcReports=[
        {"uuid": site.node, "bmc": bmc, "ledState": {"value": "LED-ON"}}])
    one, of = {"uuid": site.node}, {"project": site.project}
    listed = site.admin("admin.MachineService/ListBMC", query=one).bmc_details[0]
    for found in (site.admin("admin.MachineService/GetBMC", **one).bmc_details, listed,
                  site.owner("api.MachineService/GetBMC", **of, **one).bmc_details):
        report = found.bmc_report
        assert report.bmc.power_state == "OFF", report
        assert report.led_state.value == "LED-ON", report
        assert not report.bmc.password, report
    machine = site.admin("admin.MachineService/Get", **one).machine
    assert machine.status.led_state.value == "LED-ON", machine.status


def bmcs_are_found_by_their_user(site):
    for user, count in (("metal", 4), ("nobody", 0)):
        query = {"partition": site.tag, "bmc": {"user": user}}
        for key in ("List", "ListBMC"):
            found = as_dict(site.admin(f"admin.MachineService/{key}", query=query))
            found = found.get("machines", found.get("bmc_details", []))
            assert len(found) == count, f"{key} {user}: {len(found)}, not {count}"


def switches_are_shown_as_they_tell(site):
    """Description and version of the operating system; a machine's neighbours as it told them."""
    leaf = site.admin("admin.SwitchService/Get", id=site.leaf).switch
    assert leaf.description == "left", leaf
    assert leaf.os.version == "202311" and leaf.os.metal_core_version == "v0.18", leaf.os
    other = {"id": f"cumulus-{site.tag}", "partition": site.tag, "rack": "rack-2",
             "description": "right", "managementIp": "10.9.1.2",
             "replaceMode": "SWITCH_REPLACE_MODE_OPERATIONAL",
             "nics": [{"name": "swp1", "identifier": "swp1"}],
             "os": {"vendor": "SWITCH_OS_VENDOR_CUMULUS", "version": "5.9.1",
                    "metalCoreVersion": "v0.18"}}
    made = site.agent("infra.SwitchService/Register", switch=other).switch
    assert made.description == "right" and made.os.version == "5.9.1", made
    machine = site.admin("admin.MachineService/Get", uuid=site.fire).machine
    neighbours = machine.hardware.nics[0].neighbors
    assert [one.identifier for one in neighbours] == ["Eth1/2", "Eth1/2"], neighbours
    assert [one.hostname for one in neighbours] == [site.leaf, "spare"], neighbours


def version_and_health_are_whole(site):
    nobody = site.admin.as_(None)
    version = nobody("api.VersionService/Get").version
    for name in ("version", "revision", "git_sha1", "build_date"):
        assert getattr(version, name), f"{name} is empty"
    services = nobody("api.HealthService/Get").health.services
    names = [health_pb.Service.Name(one.name).removeprefix("SERVICE_") for one in services]
    assert names == ["IPAM", "RETHINK", "TENANT_APISERVER", "MACHINES", "AUDIT", "REDIS",
                     "TASKS"], names
    assert all(one.message for one in services), services


def a_partition_number_may_be_zero(site):
    disk = {"device": "/dev/sda", "partitions": [
        {"number": 0, "size": 500, "gptType": "GPT_TYPE_BOOT"},
        {"number": 2, "size": 0, "gptType": "GPT_TYPE_LINUX"}]}
    roots = [{"device": "/dev/sda1", "format": "FORMAT_VFAT", "path": "/boot/efi"},
             {"device": "/dev/sda2", "format": "FORMAT_EXT4", "path": "/"}]
    site.admin("admin.FilesystemService/Create", filesystemLayout={
        "id": f"{site.tag}-zero", "disks": [disk], "filesystems": roots,
        "constraints": {"sizes": [f"{site.tag}-gpu"], "images": {"firewall": ">= 3"}}})
    layout = site.owner("api.FilesystemService/Get", id=f"{site.tag}-zero").filesystem_layout
    assert [one.number for one in layout.disks[0].partitions] == [0, 2], layout


def addresses_in_a_foreign_namespace_can_be_freed(site):
    """A namespaced network that is shared: another project takes, reads and frees an address."""
    owner = site.owner
    sharing = owner("api.ProjectService/Create", login=site.tenant, name="other",
                    description="shares a network").project.uuid
    shared = site.admin("admin.NetworkService/Create", project=sharing, name="shared space",
                        parentNetwork=f"spaces-{site.tag}",
                        type="NETWORK_TYPE_CHILD_SHARED").network
    of = {"project": site.project}
    # The project's own namespace, which comes first, has not got this one.
    made = owner("api.IPService/Create", **of, network=shared.id, ip="172.16.0.9").ip
    named = {**of, "ip": made.ip}
    assert made.namespace == sharing, made
    assert owner("api.IPService/Get", **named, namespace=sharing).ip == made
    changed = owner("api.IPService/Update", **named, updateMeta=NEWEST, name="found").ip
    assert changed.name == "found", changed
    freed = owner("api.IPService/Delete", **named).ip
    assert freed.uuid == made.uuid, freed
    refused(Code.NOT_FOUND, lambda: owner("api.IPService/Get", **named, namespace=sharing))


def of_two_equal_addresses_one_is_named(site):
    """An address that a project has twice is freed only when a header says which is meant."""
    owner, of = site.owner, {"project": site.project}
    site.admin("admin.NetworkService/Create", id=f"twin-{site.tag}", vrf=500, partition=site.tag,
               type="NETWORK_TYPE_EXTERNAL", prefixes=["172.16.0.0/16"],
               destinationPrefixes=["0.0.0.0/0"])
    ip = owner("api.IPService/Create", **of, network=site.space).ip
    twin = owner("api.IPService/Create", **of, network=f"twin-{site.tag}", ip=ip.ip).ip
    assert ip.ip == twin.ip and ip.uuid != twin.uuid
    refused(Code.FAILED_PRECONDITION, lambda: owner("api.IPService/Delete", **of, ip=ip.ip))
    named = owner.with_header("metalmesh-namespace", site.project)
    freed = named("api.IPService/Delete", **of, ip=ip.ip).ip
    assert freed.uuid == ip.uuid, f"{freed} was freed, not {ip}"
    # No other has the address now.
    freed = owner("api.IPService/Delete", **of, ip=ip.ip).ip
    assert freed.uuid == twin.uuid, f"{freed} was freed, not {twin}"


def roles_and_lists_can_be_taken_away(site):
    """A token's roles by the unspecified role, a partition's lists by the unspecified address."""
    admin = site.admin
    for role in ("admin_role", "infra_role"):
        kind = role.upper()
        made = admin("api.TokenService/Create", expires=HOUR, **{role: f"{kind}_VIEWER"}).token
        assert made.HasField(role), made
        changed = admin("api.TokenService/Update", uuid=made.uuid, updateMeta=NEWEST,
                        **{role: f"{kind}_UNSPECIFIED"}).token
        assert not changed.HasField(role), changed
    empty = {"dnsServers": [{"ip": "0.0.0.0"}], "ntpServers": [{"address": "0.0.0.0"}],
             "mgmtServiceAddresses": ["0.0.0.0:1"]}
    changed = admin("admin.PartitionService/Update", id=site.tag, updateMeta=NEWEST,
                    **empty).partition
    found = (changed.dns_servers, changed.ntp_servers, changed.mgmt_service_addresses)
    assert not any(found), changed


def an_allocation_counts_its_changes(site):
    named = {"project": site.project, "uuid": site.node}
    before = site.owner("api.MachineService/Get", **named).machine.allocation
    after = site.owner("api.MachineService/Update", **named, updateMeta=NEWEST,
                       description="sells more").machine.allocation
    assert before.meta.generation + 1 == after.meta.generation, (before.meta, after.meta)
    assert before.meta.created_at == after.meta.created_at, (before.meta, after.meta)
    earlier, later = (meta.updated_at.ToNanoseconds() for meta in (before.meta, after.meta))
    assert earlier < later, (before.meta, after.meta)


STORIES = (one_stream_gets_a_command, reports_keep_their_spelling, bmcs_are_found_by_their_user,
           switches_are_shown_as_they_tell, version_and_health_are_whole,
           a_partition_number_may_be_zero, addresses_in_a_foreign_namespace_can_be_freed,
           of_two_equal_addresses_one_is_named, roles_and_lists_can_be_taken_away,
           an_allocation_counts_its_changes)


def main():
    options = COMBINATIONS[0][1]
    site = Estate("shop", 1, Caller(sys.argv[1], options, os.environ["ADMIN_TOKEN"], set()))
    site.build()
    for story in STORIES:
        story(site)
        print(f"ok {story.__name__}", flush=True)
    print(f"{len(STORIES)} stories")


main()
