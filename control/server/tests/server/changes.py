"""Other values for a field of the contract, made from its descriptor and its present value."""

from google.protobuf.descriptor import FieldDescriptor

import image_server

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB" + "B" * 42 + " other@example.com"
# A part of a field's name, and a value that such a field takes.
TEXTS = [("url", image_server.url("other.tar.zst")), ("email", "a@b.example"), ("ip", "10.9.7.8"),
         ("address", "10.9.7.9:443"), ("prefix", "10.77.0.0/16"),
         ("cidr", "10.77.0.0/16"), ("mac", "02:00:00:00:77:01"), ("key", KEY),
         ("partition", "props-six"), ("device", "/dev/sdx"), ("semver", ">= 11"),
         ("sizes", "props-gpu")]
NUMBERS = {FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32}
# JSON has them as texts.
LONG_NUMBERS = {FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64}
# A message that says nothing but a time or its length.
MOMENTS = {"google.protobuf.Timestamp": "2031-01-01T00:00:00Z", "google.protobuf.Duration": "77s"}
NESTED_MAX = 3


def is_map(field):
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def is_about(field, part):
    """`True` if a word of the field's name begins with the part: `ip` is in `ips`, not in `zip`."""
    return any(word.startswith(part) for word in field.name.split("_"))


def text(field):
    return next((value for part, value in TEXTS if is_about(field, part)), "something else")


def others(field, value, depth=0):
    """Values of a field unlike the present one, which may be none."""
    if is_map(field):
        yield from other_maps(field, value or {}, depth)
    elif field.is_repeated:
        yield from other_lists(field, value or [], depth)
    else:
        yield from other_ones(field, value, depth)


def other_maps(field, value, depth):
    entry = field.message_type.fields_by_name["value"]
    keys = list(value)
    if len(keys) > 1:
        yield {key: value[key] for key in keys[:-1]}
    for key in keys[:1]:
        for other in other_ones(entry, value[key], depth):
            yield {**value, key: other}
    for other in list(other_ones(entry, None, depth))[:1]:
        yield {**value, "else": other}


def other_lists(field, value, depth):
    if len(value) > 1:
        yield value[:-1]
    for other in other_ones(field, value[0] if value else None, depth):
        # In place of the first, and beside all.
        yield [other, *value[1:]]
        yield [*value, other]


def other_ones(field, value, depth):
    """Other values of a field, or of an element of a list."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        names = [choice.name for choice in field.enum_type.values if choice.number]
        yield from (name for name in names if name != value)
    elif field.type == FieldDescriptor.TYPE_STRING:
        if text(field) != value:
            yield text(field)
        if value and not depth:
            yield ""
    elif field.type == FieldDescriptor.TYPE_BOOL:
        yield not value
    elif field.type in NUMBERS:
        yield (value or 0) + 1
    elif field.type in LONG_NUMBERS:
        yield str(int(value or 0) + 1)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        yield from other_messages(field, value, depth)


def other_messages(field, value, depth):
    name = field.message_type.full_name
    if name in MOMENTS:
        yield MOMENTS[name]
    elif depth < NESTED_MAX:
        for inner in field.message_type.fields:
            for other in others(inner, (value or {}).get(inner.name), depth + 1):
                yield {**(value or {}), inner.name: other}
