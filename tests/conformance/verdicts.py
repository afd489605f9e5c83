"""Asks the published validator about many messages and writes its verdicts.

Each line: {"type": full name, "bytes": base64, "violations": [[field path, rule id], ...]}.
Deterministic: the same SEED gives the same messages.

Usage: verdicts.py OUT [SEED]
"""

import base64
import json
import random
import sys

import protovalidate
import published

RANDOM_MESSAGES = 60
DEPTH_MAX = 4
UUID = "0192f0c1-2f4b-7c3d-8e9f-0123456789aB"
NUMBERS = (0, 1, 2, 32, 33, 128, 129, 1000, 1001, 65532, 65533, 2**31 - 1)
SECONDS = (-1, 0, 4, 5, 599, 600, 601, 3600, 3601, 604799, 604800, 31536000, 31536001)
TIMES = (0, 1_000_000_000, 4_000_000_000)
# One text for each side of each rule; lengths at the limits.
TEXTS = (
    "", "a", "ab", "*", "**", " ab", "ab ", "a b", "\u00a0ab", "\u00e4\u00f6", "\u00e9",
    UUID, UUID[:-1], UUID + "0", UUID.replace("-", "_"), "{" + UUID + "}",
    "x" * 100, "x" * 101, "x" * 128, "x" * 129, "\u00e4" * 128, "\u00e4" * 129, "x" * 256,
    "x" * 257, "x" * 512, "x" * 513, "x" * 4097, "x" * 8193, "a" * 63 + ".b", "a" * 64 + ".b",
    "10.0.0.1", "010.0.0.1", "10.0.0", "10.0.0.256", "::1", "fe80::1%eth0", "fe80::1%", "1::2::3",
    "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "[::1]", "10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33",
    "10.0.0.0/08", "0.0.0.0/0", "::/0", "::1/128", "fd00::/64", "fd00::1/64", "::/129", "::1%a/64",
    "host", "host.example", "host.example.", "-host", "host-", "host.1", "host_a", "1host", "a..b",
    "host:80", "host:080", "host:65535", "host:65536", "host:", ":80", "10.0.0.1:53", "[::1]:53",
    "::1:53", "[::1]:", "[::1]53", "[fe80::1%a]:1", "a@b", "a@b.c", "a@", "@b", "a@b@c", "a b@c",
    "A.b+c@d.example", "a@-b", "a@b.", "http://host", "https://host:443/p?q#f", "http://[::1]:80/",
    "http://[fe80::1%25a]/", "http://[fe80::1%a]/", "http://h/%zz", "http://h/%20", "http://%c3%a4",
    "http://%ff", "http://h h", "http:", "://h", "//h/p", "1http://h", "urn:a:b", "file:///x",
    "http://u@h@i", "http://h:p", "http://[v1.a:b]/", "http://h/\u00e4", "http://h/[a]", "a:b:c",
    "http://h?a[]=b", "http://h#a#b", "mailto:a@b.c", "http://\\h", "s3://bucket/key", "h+x.y-z:",
    "00:11:22:33:44:55", "00:11:22:aa:BB:cc", "00-11-22-33-44-55", "00:11:22:33:44", "YQ==", "YWI=",
    "YWJj", "YQ=", "YQ", "====", "Y===", "a_b -c", "A", "a1", "a\n", "\n", "x\x00",
)


def fill_random(message, rng: random.Random, depth: int) -> None:
    """Sets about half of the fields."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.5:
            fill(message, field, rng, depth)


def is_map(field) -> bool:
    """Whether a field is a map."""
    kind = field.message_type
    return kind is not None and kind.GetOptions().map_entry


def fill(message, field, rng: random.Random, depth: int) -> None:
    """Sets one field to something random."""
    if is_map(field):
        key, value = field.message_type.fields
        for _ in range(rng.randint(1, 3)):
            entry = getattr(message, field.name)
            name = scalar(key, rng)
            if value.message_type:
                fill_message(entry[name], rng, depth)
            else:
                entry[name] = scalar(value, rng)
    elif field.is_repeated:
        for _ in range(rng.randint(1, 3)):
            if field.message_type:
                fill_message(getattr(message, field.name).add(), rng, depth)
            else:
                getattr(message, field.name).append(scalar(field, rng))
    elif field.message_type:
        fill_message(getattr(message, field.name), rng, depth)
    else:
        setattr(message, field.name, scalar(field, rng))


def fill_message(message, rng: random.Random, depth: int) -> None:
    """Makes a message present, and fills it."""
    message.SetInParent()
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Duration":
        message.seconds = rng.choice(SECONDS)
        if message.seconds >= 0:
            message.nanos = rng.choice((0, 1, 999_999_999))
    elif name == "google.protobuf.Timestamp":
        message.seconds = rng.choice(TIMES)
    elif depth < DEPTH_MAX:
        fill_random(message, rng, depth + 1)


def scalar(field, rng: random.Random):
    """A value of a text, number, flag or enum field."""
    if field.enum_type:
        return rng.choice([v.number for v in field.enum_type.values] + [99, -1])
    if field.cpp_type == field.CPPTYPE_STRING:
        return b"x" if field.type == field.TYPE_BYTES else rng.choice(TEXTS)
    if field.cpp_type == field.CPPTYPE_BOOL:
        return True
    return rng.choice(NUMBERS)


def sweeps(kind):
    """Each text field of a message by itself, with each text."""
    for field in kind.DESCRIPTOR.fields:
        target = field.message_type.fields[0] if is_map(field) else field
        if target.type != target.TYPE_STRING or not (field.GetOptions().ListFields()):
            continue
        for text in TEXTS:
            message = kind()
            if is_map(field):
                value = field.message_type.fields[1]
                if value.message_type is None:
                    values = getattr(message, field.name)
                    values[text] = 1 if value.type != value.TYPE_STRING else text
            elif field.is_repeated:
                getattr(message, field.name).extend([text, "ok-text"])
            else:
                setattr(message, field.name, text)
            yield message


def path(violation) -> str:
    """A violation's field as people read it."""
    out = ""
    for element in violation.proto.field.elements if violation.proto.field else ():
        out += ("." if out else "") + element.field_name
        subscript = element.subscript
        if subscript is not None:
            value = subscript.value
            out += f"[{json.dumps(value, ensure_ascii=False)}]"
    return out


def main(out: str, seed: int) -> None:
    """Writes the verdicts."""
    rng = random.Random(seed)
    with open(out, "w", encoding="utf-8") as file:
        for kind in published.messages():
            cases = list(sweeps(kind))
            for _ in range(RANDOM_MESSAGES if kind.DESCRIPTOR.fields else 0):
                message = kind()
                fill_random(message, rng, 0)
                cases.append(message)
            for message in cases:
                found = protovalidate.collect_violations(message)
                line = {
                    "type": kind.DESCRIPTOR.full_name,
                    "bytes": base64.b64encode(message.SerializeToString()).decode(),
                    "violations": [[path(v), v.proto.rule_id] for v in found],
                }
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
