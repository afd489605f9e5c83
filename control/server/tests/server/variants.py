"""Requests that say the same as another, or nothing more, in another way: fields that are absent,
null, empty or zero, and ids and addresses in other spellings.
"""

import copy
import re

from buf.validate import validate_pb2
from google.protobuf.descriptor import FieldDescriptor

from changes import MOMENTS, is_map
from spellings import UUID, accepted, refused

# The zero of a field in JSON, by its type; 0 for numbers.
ZEROES = {FieldDescriptor.TYPE_STRING: "", FieldDescriptor.TYPE_BYTES: "",
          FieldDescriptor.TYPE_BOOL: False, FieldDescriptor.TYPE_ENUM: 0}
# Their zero says something where the field is optional.
SAYING = {FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32,
          FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64}
LIKE_A_UUID = re.compile(UUID.pattern, re.IGNORECASE)


def rules(field):
    return field.GetOptions().Extensions[validate_pb2.field]


def has_rules(field):
    return field.GetOptions().HasExtension(validate_pb2.field)


def may_refuse_empty(field):
    """`True` if the contract has rules for the field or in it, which may refuse its zero."""
    inner = field.message_type
    in_it = inner and (any(has_rules(one) for one in inner.fields)
                       or any(one.has_options for one in inner.oneofs))
    return has_rules(field) or bool(in_it)


def is_a_choice(field):
    """`true` of a field of a oneof: setting it makes the choice."""
    oneof = field.containing_oneof
    return oneof is not None and not oneof.name.startswith("_")


def ignores_zero(field):
    return rules(field).ignore == validate_pb2.IGNORE_IF_ZERO_VALUE


def is_uuid(field):
    found = rules(field)
    return found.string.uuid or found.repeated.items.string.uuid


def zero(field):
    if is_map(field):
        return {}
    if field.is_repeated:
        return []
    if field.message_type:
        return {}
    return ZEROES.get(field.type, 0)


def nodes(message, content, path=()):
    """Each message of a request's JSON that is there: its way, its type, and its content."""
    yield path, message, content
    for field in message.fields:
        value = content.get(field.name)
        inner = field.message_type
        if value is None or not inner or is_map(field) or inner.full_name in MOMENTS:
            continue
        for at, one in enumerate(value) if field.is_repeated else [(None, value)]:
            step = (field.name,) if at is None else (field.name, at)
            yield from nodes(inner, one, (*path, *step))


def changed(request, path, name, value):
    """A copy of a request's JSON with one field set, or absent without a value."""
    request = copy.deepcopy(request)
    node = request
    for step in path:
        node = node[step]
    node.pop(name, None)
    if value is not ABSENT:
        node[name] = value
    return request


ABSENT = object()


def empties(message, request):
    """Pairs of requests: with a field absent, and with it null or at its zero."""
    for path, node, _ in nodes(message, request):
        for field in node.fields:
            if is_a_choice(field):
                continue
            if field.message_type and field.message_type.full_name in MOMENTS:
                others = [None]
            else:
                others = [None, zero(field)]
            without = changed(request, path, field.name, ABSENT)
            for other in others:
                yield field, other, without, changed(request, path, field.name, other)


def texts(message, request):
    """Each text of a request: its way, its field, and the text itself."""
    for path, node, content in nodes(message, request):
        for field in node.fields:
            value = content.get(field.name)
            if is_map(field) and isinstance(value, dict):
                yield from (((*path, field.name), field, key) for key in value)
            elif field.type == FieldDescriptor.TYPE_STRING and value:
                for at, one in enumerate(value) if field.is_repeated else [(None, value)]:
                    step = (field.name,) if at is None else (field.name, at)
                    yield (*path, *step), field, one


def with_text(request, path, field, old, new):
    request = copy.deepcopy(request)
    node = request
    for step in path[:-1]:
        node = node[step]
    if is_map(field):
        node[path[-1]] = {new if key == old else key: value
                          for key, value in node[path[-1]].items()}
    else:
        node[path[-1]] = new
    return request


def respelled(message, request):
    """Requests with one id or address in another spelling, and whether that is accepted."""
    for path, field, value in texts(message, request):
        # A name may look like a UUID, and is compared letter by letter; logins are names.
        is_id = is_uuid(field) or is_map(field) and field.name != "tenant_roles"
        if LIKE_A_UUID.fullmatch(value) and not is_id:
            continue
        for kind, spellings in ((True, accepted(value)), (False, refused(value))):
            for spelling in spellings:
                yield field, spelling, kind, with_text(request, path, field, value, spelling)
