"""Objects that can be read and updated, one of each kind and type, and what an update of each is
called and sends. The methods are held against the contract: a new update needs an entry here.
"""

from connectrpc.code import Code
from google.protobuf import json_format

import image_server
import metalstack.api.v2.common_pb2 as common_pb
from caller import CONTRACT, NEWEST, refused

# Fields of an update beside those of the object.
ABOUT_THE_UPDATE = {"update_meta", "updated_at", "force"}
# Every update of the contract.
UPDATES = {key for key in CONTRACT if key.endswith("/Update")}
# A method's option with the roles that may call it, and what a permission for it is called.
KINDS = {"project_roles": ("project", "project"), "tenant_roles": ("tenant", "login"),
         "machine_roles": ("machine", "uuid"), "admin_roles": ("admin", None),
         "infra_roles": ("infra", None)}
BY_PATH = {f"/{method.containing_service.full_name}/{method.name}": method
           for _, _, method in CONTRACT.values()}


def as_dict(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def labels_of(content):
    return content.get("meta", {}).get("labels", {}).get("labels", {})


def kind_of(method):
    """The kind of permission that a method needs, and the field that names its subject."""
    options = method.GetOptions().Extensions
    visibility = options[common_pb.visibility]
    if visibility:
        return common_pb.Visibility.Name(visibility).removeprefix("VISIBILITY_").lower(), None
    return next(names for option, names in KINDS.items() if options[getattr(common_pb, option)])


def permissions_to_send(shown):
    """A token's permissions as an update has them: by visibility, not by subject alone."""
    sent = []
    for permission in shown:
        methods, subject = permission.get("methods", []), permission.get("subject", "")
        known = BY_PATH.get(next(iter(methods), None))
        kind, field = kind_of(known) if known else ("project", "project")
        sent.append({kind: {**({field: subject} if field else {}), "methods": methods}})
    return sent


def permissions_shown(sent):
    """Permissions that an update sends, as the token shows them."""
    shown = []
    for permission in sent:
        (kind, given), = permission.items()
        subject = {"subject": value for name, value in given.items() if name != "methods"}
        methods = {"methods": given["methods"]} if given["methods"] else {}
        shown.append({**subject, **methods})
    return shown


class Thing:
    """An object: the caller and method that update it, those that read it, and its name.

    `path` leads from the answer of the read to what is updated. `always` are fields that the
    contract requires in every update.
    """

    def __init__(self, who, update, get, named, path, reader=None, read_by=None, always=()):
        self.who, self.update_key, self.named, self.path = who, update, named, path
        self.reader, self.get_key, self.read_by = reader or who, get, read_by or named
        self.always = always
        own = {*named, *ABOUT_THE_UPDATE}
        fields = CONTRACT[update][2].input_type.fields
        # As the object has them: an update has permissions in another form.
        shown = CONTRACT[get][2].output_type
        for step in path:
            shown = shown.fields_by_name[step].message_type
        self.fields = {field.name: shown.fields_by_name.get(field.name, field)
                       for field in fields if field.name not in own}

    def __str__(self):
        return f"{self.update_key} {self.named}"

    def read(self):
        """The object with all that belongs to it, as Get answers."""
        return as_dict(self.reader(self.get_key, **self.read_by))[self.path[0]]

    def content(self, whole):
        """The part of the object that an update is about."""
        for step in self.path[1:]:
            whole = whole[step]
        return whole

    def update(self, fields):
        """Sends an update; the object of the answer."""
        if self.always:
            content = self.content(self.read())
            fields = {**{name: content[name] for name in self.always}, **fields}
        answer = self.who(self.update_key, **self.named, updateMeta=NEWEST, **fields)
        return as_dict(answer)[self.path[0]]

    def to_send(self, name, value):
        """A field's value as an update has it."""
        return permissions_to_send(value) if name == "permissions" else value

    def follows(self, name, value):
        """Labels that control sets with a field: an image's digest is that of its URL."""
        is_image = self.path == ["image"] and name == "url"
        return image_server.labels(value) if is_image else {}

    @staticmethod
    def can_send(name, value):
        """`false` of permissions with a subject of a kind that has none."""
        return name != "permissions" or permissions_shown(permissions_to_send(value)) == value

    def written_back(self):
        """Each field of the update as it is now."""
        content = self.content(self.read())
        fields = {name: self.to_send(name, content[name])
                  for name in self.fields if name in content}
        if "labels" in self.fields:
            fields["labels"] = {"replace": {"labels": labels_of(content)}}
        return fields


def of_the_catalogue(site):
    """Objects that administrators alone update."""
    admin, owner, tag = site.admin, site.owner, site.tag
    for kind, attribute, names in (
            ("Partition", "partition", (tag, f"{tag}-six")),
            ("Size", "size", (tag, f"{tag}-gpu")),
            ("Filesystem", "filesystem_layout", (tag, f"{tag}-raid")),
            ("Image", "image", (site.image, "firewall-3.0.1"))):
        for name in names:
            yield Thing(admin, f"admin.{kind}Service/Update", f"api.{kind}Service/Get",
                        {"id": name}, [attribute])
    yield Thing(admin, "admin.SizeImageConstraintService/Update",
                "admin.SizeImageConstraintService/Get", {"size": tag}, ["size_image_constraint"])
    yield Thing(admin, "admin.SwitchService/Update", "admin.SwitchService/Get",
                {"id": site.leaf}, ["switch"])
    children = (site.network, site.shared, site.both, site.six, site.space)
    for network in (*(f"{kind}-{tag}" for kind in
                      ("super", "underlay", "external", "spaces", "both")), *children):
        yield Thing(admin, "admin.NetworkService/Update", "admin.NetworkService/Get",
                    {"id": network}, ["network"])
    of = {"project": site.project, "id": site.kept}
    yield Thing(admin, "admin.SizeReservationService/Update", "api.SizeReservationService/Get",
                {"id": site.kept}, ["size_reservation"], owner, of, always=["partitions"])


def of_a_tenant(site, who):
    """Objects of a project or tenant, which their owner updates, and administrators too."""
    of = {"project": site.project}
    named = [("Network", "network", {**of, "id": network}) for network in
             (site.network, site.shared, site.both, site.six, site.space)]
    # The one in a namespace is read by its namespace.
    named += [("IP", "ip", {**of, "ip": ip}) for ip in (site.ip, site.ip_six, site.ip_both)]
    named += [("Project", "project", of), ("Tenant", "tenant", {"login": site.tenant})]
    for kind, attribute, name in named:
        yield Thing(who, f"api.{kind}Service/Update", f"api.{kind}Service/Get", name, [attribute])
    space = {**of, "ip": site.ip_space}
    yield Thing(who, "api.IPService/Update", "api.IPService/Get", space, ["ip"],
                read_by={**space, "namespace": site.project})
    for node in (site.node, site.fire):
        yield Thing(who, "api.MachineService/Update", "api.MachineService/Get",
                    {**of, "uuid": node}, ["machine", "allocation"])


def tokens(site):
    """Tokens, which their own user updates."""
    for who, token in ((site.owner, site.token), (site.admin, site.admins_token),
                       (site.admin, site.infra_token)):
        yield Thing(who, "api.TokenService/Update", "api.TokenService/Get", {"uuid": token},
                    ["token"])


def things(site):
    """Each object with each caller who may update it."""
    found = [*of_the_catalogue(site), *of_a_tenant(site, site.owner),
             *of_a_tenant(site, site.admin), *tokens(site)]
    covered = {thing.update_key for thing in found}
    assert covered == UPDATES, f"without an object: {sorted(UPDATES ^ covered)}"
    return found


def others_are_refused(site):
    """Owners do not update what is the administrators'; returns how many kinds were tried."""
    tried = set()
    for thing in of_the_catalogue(site):
        if thing.update_key in tried:
            continue
        tried.add(thing.update_key)
        thing.who = site.owner
        refused(Code.PERMISSION_DENIED, lambda: thing.update({}))
    return len(tried)
