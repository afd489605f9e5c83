"""All that requests of Ironic's API could change, as an administrator reads it."""

# Lists, by the objects that they show.
LISTS = {
    "nodes": "/v1/nodes/detail?include_children=True",
    "ports": "/v1/ports/detail",
    "portgroups": "/v1/portgroups/detail",
    "allocations": "/v1/allocations",
    "chassis": "/v1/chassis/detail",
    "deploy_templates": "/v1/deploy_templates?detail=True",
    "runbooks": "/v1/runbooks?detail=True",
    "network ports": "/v2.0/ports",
}
# Observations, which change by themselves.
VOLATILE = ("updated_at", "provision_updated_at", "driver_internal_info", "power_state",
            "target_power_state", "provision_state", "target_provision_state", "last_error")


def stable(value):
    """A value without its observations."""
    if isinstance(value, dict):
        return {name: stable(one) for name, one in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [stable(one) for one in value]
    return value


def read(site, *names):
    """What these lists show; all of them if none is named."""
    return {name: site.ok("GET", LISTS[name]) for name in names or LISTS}


def state(site, *names):
    """The same without what changes by itself."""
    return stable(read(site, *names))


def busy(found):
    """Ids of the nodes that are on their way to another state, and change while they are."""
    nodes = found.get("nodes", {}).get("nodes", [])
    return {node["uuid"] for node in nodes if node.get("target_provision_state")}


def at_rest(found, moving):
    """What was read, without what changes by itself and without nodes that are on their way."""
    def is_at_rest(row):
        return not moving & {row.get("uuid"), row.get("node_uuid")}

    return {name: [stable(row) for rows in answer.values() if isinstance(rows, list)
                   for row in rows if is_at_rest(row)]
            for name, answer in found.items()}


def difference(before, after):
    """The first list that changed, as it was and as it is; None if none did."""
    moving = busy(before) | busy(after)
    was, now = at_rest(before, moving), at_rest(after, moving)
    for name, rows in was.items():
        if rows != now[name]:
            gone = [row for row in rows if row not in now[name]]
            come = [row for row in now[name] if row not in rows]
            return f"{name}: {gone} became {come}"
    return None
