"""Mistakes in requests, seeded: in bodies, patches, queries, paths and headers."""

import copy
import json

LONG = (300, 5_000, 70_000)
# Longer bodies are not sent: the listener refuses them before Ironic's API sees them.
BODY_BYTES_MAX = 500_000
NUMBERS = (0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 1.5, 1e308, -0.0)
UNICODE = ("\u0000", "\u202e", "\ud7ff", "\ud800", "\ufeffx", "e\u0301" * 20, "\U0001f4a9" * 70,
           "ａｃｔｉｖｅ", "\u2028", "ı", "ß" * 255)
TEXTS = ("", " ", "None", "null", "true", "0", "../..", "%00", "a/b", "'; --", "file:///etc/passwd",
         "metalmesh", "CUSTOM_A", "52:54:00:00:01:01", "10.0.0.1", "x" * 255, "x" * 256)
POINTERS = ("", "/", "//", "/extra", "/extra/", "/extra/a", "/extra/~0~1", "/extra/~2", "/extra/-",
            "/properties/cpus/0", "/name", "/uuid", "/owner", "/driver_info/password", "/traits",
            "/created_at", "/links/0", "/provision_state", "/" + "a/" * 30, "/" + "x" * 300, "name")
OPERATIONS = ("add", "replace", "remove", "test", "move", "copy", "ADD", "", None, 1)
NAMES = ("limit", "marker", "fields", "detail", "sort_key", "sort_dir", "owner", "node", "name",
         "binding:host_id", "type", "project", "maintenance", "provision_state", "include_children",
         "resource_class", "conductor_group", "shard", "sharded", "created_by", "chassis_uuid",
         "instance_uuid", "associated", "retired", "driver", "fault", "description_contains", "all",
         "parent_node", "address", "portgroup", "state", "id", "network_id", "nonsense", "%ff")
VERSIONS = ("1.115", "1.115", "1.80", "1.1", "1.92", "latest", "1.116", "2.0", "1.", "x", "",
            "1.99999999999999999999", "1.-1", "-1.1", "1.80, 1.90", "1.8\xb2")
# Headers by which the clients of a real Ironic could try to name an identity behind its middleware.
IDENTITY = {"X-Roles": "admin", "X-Project-Id": "x", "X-User-Id": "x", "X-Is-Admin-Project": "True",
            "X-Identity-Status": "Confirmed", "X-System-Scope": "all", "OpenStack-System-Scope": "all",
            "X-Service-Token": "x", "X-Forwarded-Host": "evil.example", "X-Subject-Token": "nonsense",
            "X-HTTP-Method-Override": "DELETE", "Range": "bytes=0-", "If-Match": "*",
            "Accept-Language": "xx", "Cookie": "a=b"}
CONTENT_TYPES = ("application/json", "application/json; charset=utf-16", "text/plain", "*/*",
                 "application/x-www-form-urlencoded", "multipart/form-data", "\xff", "")
# Bodies that are no JSON.
MALFORMED = (b"{", b"[1,", b"\xff\xfe", b'{"a":', b"nul", b'"' + b"x" * 100, b"[" * 5000,
             b'{"a":' * 5000, b"{}{}", b"NaN", b'{"a":1e999}', b"\xef\xbb\xbf{}", b"'{}'")


class Mistakes:
    """Random mistakes."""

    def __init__(self, random, idents):
        self.random, self.idents = random, idents
        self.kinds = (self.other_type, self.number, self.nested, self.unknown, self.long,
                      self.unicode, self.nothing, self.without, self.empty, self.often, self.ident)

    def chance(self, share):
        return self.random.random() < share

    def body(self, shape):
        """A documented body with up to three mistakes."""
        body = copy.deepcopy(shape)
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            if isinstance(body, list) and self.chance(0.4):
                body = self.patch(body)
            else:
                body = self.wrong(body)
        return body

    def content(self, shape):
        """The bytes of such a body; some are no JSON, or name a field twice."""
        if self.chance(0.03):
            return self.random.choice(MALFORMED)
        body = self.body(shape)
        text = json.dumps(body)
        if isinstance(body, dict) and body and self.chance(0.04):
            name = json.dumps(next(iter(body)))
            text = f"{{{name}: {json.dumps(self.odd())}, {text[1:]}"
        return text.encode() if len(text) < BODY_BYTES_MAX else b"[]"

    def wrong(self, body):
        """One mistake somewhere in a value."""
        spots = list(self.spots(body))
        if not spots or self.chance(0.05):
            return self.odd()
        place, key = self.random.choice(spots)
        self.random.choice(self.kinds)(place, key)
        return body

    def spots(self, value):
        """Every place in a value: what holds it, and its key there."""
        pairs = ()
        if isinstance(value, dict):
            pairs = list(value.items())
        elif isinstance(value, list):
            pairs = list(enumerate(value))
        for key, one in pairs:
            yield value, key
            yield from self.spots(one)

    def odd(self):
        kind = self.random.randrange(7)
        if kind == 0:
            return self.random.choice(NUMBERS)
        if kind == 1:
            return self.random.choice(UNICODE)
        if kind == 2:
            return self.random.choice((None, True, False))
        if kind == 3:
            return [self.random.choice(TEXTS)] * self.random.randrange(4)
        if kind == 4:
            return {self.random.choice(TEXTS): self.random.choice(NUMBERS)}
        return self.random.choice(TEXTS)

    def other_type(self, place, key):
        kind = type(place[key])
        choices = [1, "x", None, True, [], {}, [1], {"a": 1}, 1.5]
        place[key] = self.random.choice([one for one in choices if type(one) is not kind])

    def number(self, place, key):
        place[key] = self.random.choice(NUMBERS)

    def nested(self, place, key):
        value = place[key]
        is_list = self.chance(0.5)
        for _ in range(self.random.choice((3, 20, 90, 200))):
            value = [value] if is_list else {"a": value}
        place[key] = value

    def unknown(self, place, key):
        if isinstance(place, dict):
            place[self.random.choice((*TEXTS, *UNICODE[:3], "nonsense"))] = self.odd()
        else:
            place.append(self.odd())

    def long(self, place, key):
        place[key] = self.random.choice("xß/,") * self.random.choice(LONG)

    def unicode(self, place, key):
        place[key] = self.random.choice(UNICODE)

    def nothing(self, place, key):
        place[key] = None

    def without(self, place, key):
        del place[key]

    def empty(self, place, key):
        place[key] = self.random.choice(("", [], {}))

    def often(self, place, key):
        times = self.random.choice((2, 30, 1_100))
        is_short = len(str(place[key])) < 200
        place[key] = [place[key]] * (times if is_short else 2)

    def ident(self, place, key):
        place[key] = self.random.choice(self.idents)

    def patch(self, operations):
        """A list of operations with another one, or with one that is wrong in its own way."""
        wrong = {"op": self.random.choice(OPERATIONS), "path": self.random.choice(POINTERS)}
        if self.chance(0.8):
            wrong["value"] = self.odd()
        if self.chance(0.1):
            wrong["from"] = self.random.choice(POINTERS)
        at = self.random.randrange(len(operations) + 1)
        return operations[:at] + [wrong] + operations[at:]

    def path(self, path):
        """A path whose parameters, in braces, are ids; with a query now and then."""
        while "{" in path:
            begin, end = path.index("{"), path.index("}")
            path = path[:begin] + self.random.choice(self.idents) + path[end + 1:]
        return path + self.query()

    def query(self):
        if not self.chance(0.25):
            return ""
        values = ("0", "-1", "1", "x", "True", "false", "uuid", "9" * 30, "%00", "a,b", "", "%zz",
                  "%ff", "uuid,uuid", "x" * 2_000, *self.idents)
        count = self.random.choice((1, 1, 2, 3, 70))
        pairs = [f"{self.random.choice(NAMES)}={self.random.choice(values)}" for _ in range(count)]
        return "?" + self.random.choice("&&;").join(pairs)

    def headers(self):
        head = {}
        if self.chance(0.3):
            head["X-OpenStack-Ironic-API-Version"] = self.random.choice(VERSIONS)
        if self.chance(0.15):
            head["Content-Type"] = self.random.choice(CONTENT_TYPES)
        if self.chance(0.1):
            head["OpenStack-API-Version"] = "baremetal " + self.random.choice(VERSIONS)
        if self.chance(0.2):
            for _ in range(self.random.randrange(1, 4)):
                name = self.random.choice(sorted(IDENTITY))
                head[name] = IDENTITY[name]
        if self.chance(0.05):
            head["Accept"] = self.random.choice(("text/html", "", "*/*;q=0", "x" * 1_000))
        return head
