"""Rules for fields of queries that no plain filter over one object decides."""

import datetime

from connectrpc.code import Code

from caller import refused
from things import as_dict


def pages_are_the_whole(site, counted):
    """Pages one after the other are the list without paging, for tenants and tasks."""
    everything = as_dict(site.admin("admin.TenantService/List"))["tenants"]
    pages, page = [], 0
    while page is not None:
        got = site.admin("admin.TenantService/List",
                         query={"paging": {"page": str(page), "count": "2"}})
        pages += as_dict(got)["tenants"]
        page = got.next_page if got.HasField("next_page") else None
        counted["pages"] += 1
    assert pages == everything, f"{pages} are not {everything}"
    refused(Code.INVALID_ARGUMENT, lambda: site.owner(
        "api.TenantService/List", query={"paging": {"count": "2"}}))
    tasks = as_dict(site.admin("admin.TaskService/List")).get("tasks", [])
    assert tasks, "no task"
    for page, task in enumerate(tasks, start=1):
        got = as_dict(site.admin("admin.TaskService/List", count=1, page=page)).get("tasks", [])
        assert got == [task], f"page {page}: {got} is not {task}"
        counted["pages"] += 1


def audit_bounds(site, counted):
    """Bounds of time include the moment itself; a part of a body finds it; a limit cuts."""
    list_traces = lambda **query: as_dict(site.admin("admin.AuditService/List", query={
        "to": site.built_at, "limit": 1000, **query})).get("traces", [])
    everything = list_traces()
    moment = everything[len(everything) // 2]["timestamp"]
    # As texts, "27Z" is later than "27.219Z": a whole second has no fraction.
    when = datetime.datetime.fromisoformat
    bounds = (("from", lambda at: at >= when(moment)), ("to", lambda at: at <= when(moment)))
    for bound, fits in bounds:
        wanted = [trace for trace in everything if fits(when(trace["timestamp"]))]
        found = list_traces(**{bound: moment})
        assert found == wanted, f"{bound} {moment}: {len(found)} traces, not {len(wanted)}"
    for part in (site.project[:13], "shop", "nobody wrote this"):
        wanted = [trace for trace in everything if part in trace.get("body", "")]
        assert list_traces(body=part) == wanted, f"body {part}"
    found = list_traces(limit=3)
    assert len(found) == 3 and all(trace in everything for trace in found), found
    counted["audit bounds"] += 6


def issues_are_chosen(site, counted):
    """`only`, `omit` and `severity` choose among the issues that are there without them."""
    def issues(**query):
        return {found["uuid"]: found["issues"] for found in as_dict(
            site.admin("admin.MachineService/Issues", query=query)).get("issues", [])}

    everything = issues()
    kinds = sorted({issue["type"] for found in everything.values() for issue in found})
    levels = ["MINOR", "MAJOR", "CRITICAL"]
    level = lambda issue: levels.index(issue["severity"].rsplit("_", 1)[1])
    rules = [({"only": [kind]}, lambda issue, kind=kind: issue["type"] == kind) for kind in kinds]
    rules += [({"omit": [kind]}, lambda issue, kind=kind: issue["type"] != kind)
              for kind in kinds]
    rules += [({"severity": f"MACHINE_ISSUE_SEVERITY_{name}"},
               lambda issue, least=least: level(issue) >= least)
              for least, name in enumerate(levels)]
    # No event is that young.
    rules.append(({"lastErrorThreshold": "0.001s"},
                  lambda issue: issue["type"] != "MACHINE_ISSUE_TYPE_LAST_EVENT_ERROR"))
    for query, fits in rules:
        wanted = {uuid: [issue for issue in found if fits(issue)]
                  for uuid, found in everything.items()}
        wanted = {uuid: found for uuid, found in wanted.items() if found}
        assert issues(**query) == wanted, f"{query}: {issues(**query)} is not {wanted}"
        counted["choices of issues"] += 1


def capacity_is_chosen(site, counted):
    """A size chooses among the sizes of each partition's capacity."""
    capacity = lambda **query: as_dict(site.admin(
        "admin.PartitionService/Capacity", **query)).get("partition_capacity", [])
    for size in (site.tag, f"{site.tag}-gpu"):
        for partition in capacity(id=site.tag):
            wanted = [found for found in partition.get("machine_size_capacities", [])
                      if found["size"] == size]
            found = [found for one in capacity(id=site.tag, size=size)
                     for found in one.get("machine_size_capacities", [])]
            assert found == wanted, f"{size}: {found} is not {wanted}"
            counted["capacities"] += 1


def connected_machines_are_chosen(site, counted):
    """A machine query chooses among a switch's connections, a switch query among switches."""
    connected = lambda **query: {
        found["id"]: sorted(one["machine"]["uuid"] for one in found.get("connections", []))
        for found in as_dict(site.admin("admin.SwitchService/ConnectedMachines", **query)).get(
            "switches_with_machines", [])}
    everything = connected()
    assert len(everything[site.leaf]) == 3, everything
    for node in (site.node, site.fire, site.idle):
        found = connected(query={"id": site.leaf}, machineQuery={"uuid": node})
        assert found == {site.leaf: [node]}, found
        found = connected(query={"connectedMachineId": node})
        assert found == {site.leaf: everything[site.leaf]}, found
        counted["connections"] += 2


RULES = (pages_are_the_whole, audit_bounds, issues_are_chosen, capacity_is_chosen,
         connected_machines_are_chosen)
