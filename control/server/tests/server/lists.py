"""The contract's methods that list, their queries' fields, and the objects that they list."""

from caller import CONTRACT
from things import as_dict

# Messages that a query's field has as one value.
WHOLE = {"metalstack.api.v2.Labels", "metalstack.api.v2.Paging", "metalstack.api.v2.MachineVPN",
         "google.protobuf.Timestamp", "google.protobuf.Duration"}
# Filters that are fields of the request itself, and what they are called together.
PLAIN = {"admin.TaskService/List": "TaskQuery", "admin.PartitionService/Capacity": "CapacityQuery",
         "api.FilesystemService/List": "FilesystemQuery",
         "admin.VPNService/ListNodes": "VPNQuery"}
# Methods that list and are tried elsewhere, and where.
ELSEWHERE = {"admin.VPNService/ListNodes": "needs a VPN; vpn.rs",
             "admin.SwitchService/ConnectedMachines": "connected_machines_are_chosen"}
# A field that is no filter in one method, and what it is there.
OWN_SENSE = {("api.NetworkService/ListBaseNetworks", "NetworkQuery.project"):
             "names the project whose base networks are listed, as the published CLI sends it"}
# They list with the needed name alone.
UNFILTERED = {"api.ProjectService/InvitesList", "api.TenantService/InvitesList",
              "api.MethodService/List", "api.MethodService/TokenScopedList",
              "admin.TaskService/Queues"}


def nested(path, value):
    """A query with one field: of a.b it is {a: {b: value}}."""
    for name in reversed(path):
        value = {name: value}
    return value


def leaves(message, root, path=(), prefix=()):
    """Each field of a query: its name, its way from the request, and its descriptor."""
    for field in message.fields:
        here, whole = (*path, field.name), (*prefix, field.name)
        inner = field.message_type
        if not inner or inner.full_name in WHOLE or field.is_repeated:
            yield f"{root}.{'.'.join(here)}", whole, field
        elif inner.name == "MachineQuery":
            # The same wherever it stands.
            yield from leaves(inner, "MachineQuery", (), whole)
        else:
            yield from leaves(inner, root, here, whole)


def fields_of(key):
    """The fields of all queries of a method's request."""
    request = CONTRACT[key][2].input_type
    if key in PLAIN:
        return list(leaves(request, PLAIN[key]))
    return [leaf for field in request.fields if field.message_type
            for leaf in leaves(field.message_type, field.message_type.name, (), (field.name,))]


class List:
    """A method that lists: its caller, and how Get reads one of what it lists.

    `base` goes with every query; `read` gives an object by its entry in the list. Entries are
    objects or, where `entry_is_object` is not set, lead to one by `name`; then `shown` may read
    what the entry is.
    """

    def __init__(self, who, key, name, read, base=None, entry_is_object=True, shown=None):
        self.who, self.key, self.name, self.read = who, key, name, read
        self.base, self.entry_is_object = base or {}, entry_is_object
        self.shown = shown
        output = CONTRACT[key][2].output_type
        self.items = next(field.name for field in output.fields if field.is_repeated)
        self.leaves = fields_of(key)

    def __str__(self):
        return self.key

    def entries(self, query):
        request = {**self.base, **query}
        for name in set(self.base) & set(query):
            if isinstance(query[name], dict):
                request[name] = {**self.base[name], **query[name]}
        return as_dict(self.who(self.key, **request)).get(self.items, [])

    def names(self, query):
        return sorted(self.name(entry) for entry in self.entries(query))

    def objects(self):
        """Everything that there is, as Get answers."""
        return {self.name(entry): self.read(entry) for entry in self.entries({})}


def by(field):
    return lambda entry: entry[field]


def lists(site):
    """Each method of the contract that lists."""
    admin, owner, of = site.admin, site.owner, {"project": site.project}

    def get(who, key, attribute, named):
        return lambda entry: as_dict(who(key, **named(entry)))[attribute]

    for kind, attribute in (("Image", "image"), ("Size", "size"), ("Partition", "partition"),
                            ("Filesystem", "filesystem_layout")):
        yield List(owner, f"api.{kind}Service/List", by("id"), get(
            owner, f"api.{kind}Service/Get", attribute, lambda entry: {"id": entry["id"]}))
    image = lambda entry: entry["image"]["id"]
    read = get(admin, "api.ImageService/Get", "image", lambda entry: {"id": image(entry)})
    yield List(admin, "admin.ImageService/Usage", image, read, entry_is_object=False,
               shown=lambda entry: {"image": read(entry), **site.used_by(image(entry))})
    yield from of_tenancy(site, get)
    yield from of_networks(site, get)
    yield from of_machines(site, get)
    for who, key, kind, base, name in (
            (admin, "admin.SizeImageConstraintService", "size_image_constraint", {}, "size"),
            (admin, "admin.SwitchService", "switch", {}, "id"),
            (admin, "admin.ComponentService", "component", {}, "uuid"),
            (owner, "api.SizeReservationService", "size_reservation", of, "id")):
        yield List(who, f"{key}/List", by(name), get(
            who, f"{key}/Get", kind, lambda entry, base=base, name=name: {
                **base, name: entry[name]}), base)
    yield List(admin, "admin.SizeReservationService/List", by("id"), get(
        admin, "api.SizeReservationService/Get", "size_reservation",
        lambda entry: {"id": entry["id"], "project": entry["project"]}))
    task = lambda entry: {"taskId": entry["id"], "queue": entry["queue"]}
    yield List(admin, "admin.TaskService/List", by("id"),
               get(admin, "admin.TaskService/Get", "task", task))
    yield List(admin, "admin.PartitionService/Capacity", by("partition"), lambda entry: entry)


def of_tenancy(site, get):
    admin, owner = site.admin, site.owner
    for who, side in ((owner, "api"), (admin, "admin")):
        yield List(who, f"{side}.ProjectService/List", by("uuid"), get(
            who, "api.ProjectService/Get", "project", lambda entry: {"project": entry["uuid"]}))
        yield List(who, f"{side}.TenantService/List", by("login"), get(
            who, "api.TenantService/Get", "tenant", lambda entry: {"login": entry["login"]}))
    yield List(owner, "api.TokenService/List", by("uuid"), get(
        owner, "api.TokenService/Get", "token", lambda entry: {"uuid": entry["uuid"]}))
    # An administrator reads another's token in the list alone.
    yield List(admin, "admin.TokenService/List", by("uuid"), lambda entry: entry)
    half = lambda entry: f"{entry['uuid']} {entry['phase']}"
    for who, side, of in ((owner, "api", {"login": site.tenant}), (admin, "admin", {})):
        yield List(who, f"{side}.AuditService/List", half, get(
            who, f"{side}.AuditService/Get", "trace",
            lambda entry, of=of: {**of, "uuid": entry["uuid"], "phase": entry["phase"]}),
            {**of, "query": {"to": site.built_at, "limit": 1000}})


def of_networks(site, get):
    admin, owner, of = site.admin, site.owner, {"project": site.project}
    named = lambda entry: {"id": entry["id"]}
    yield List(admin, "admin.NetworkService/List", by("id"),
               get(admin, "admin.NetworkService/Get", "network", named))
    for method in ("List", "ListBaseNetworks"):
        yield List(owner, f"api.NetworkService/{method}", by("id"), get(
            owner, "api.NetworkService/Get", "network",
            lambda entry: {**of, **named(entry)}), of)
    address = lambda entry: f"{entry.get('namespace', '')} {entry['ip']}"
    space = lambda entry: {"ip": entry["ip"], "project": entry["project"], **(
        {"namespace": entry["namespace"]} if "namespace" in entry else {})}
    for who, side, base in ((owner, "api", of), (admin, "admin", {})):
        yield List(who, f"{side}.IPService/List", address,
                   get(who, "api.IPService/Get", "ip", space), base)


def of_machines(site, get):
    admin, owner, of = site.admin, site.owner, {"project": site.project}
    named = lambda entry: {"uuid": entry["uuid"]}
    whole = get(admin, "admin.MachineService/Get", "machine", named)
    yield List(owner, "api.MachineService/List", by("uuid"), get(
        owner, "api.MachineService/Get", "machine", lambda entry: {**of, **named(entry)}), of)
    yield List(admin, "admin.MachineService/List", by("uuid"), whole)
    report = get(admin, "admin.MachineService/GetBMC", "bmc_details", named)
    yield List(admin, "admin.MachineService/ListBMC", by("uuid"), whole, entry_is_object=False,
               shown=report)
    yield List(admin, "admin.MachineService/Issues", by("uuid"), whole, entry_is_object=False)
