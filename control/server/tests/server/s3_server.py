"""moto's S3 over TLS, with keys that it checks; what is in the bucket at the start is two years old.

argv: certificate, its key, file for the access key, file for the secret key, names of objects.
The address is printed when it listens; it ends with its standard input.
"""

import datetime
import json
import os
import ssl
import sys
import threading
from pathlib import Path

# Every call is checked: its signature, and what its user may do.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"

from urllib.parse import quote, unquote

from moto.backends import get_backend
from moto.iam.access_control import S3IAMRequest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

create_aws_request = S3IAMRequest._create_aws_request


def create_as_sent(self):
    """moto checks signatures over the decoded query: any slash in one would be refused."""
    path, mark, query = self._path.partition("?")
    words = (pair.split("=", 1) for pair in query.split("&"))
    encoded = ("=".join(quote(unquote(it), safe="-_.~") for it in pair) for pair in words)
    self._path = path + mark + "&".join(encoded)
    return create_aws_request(self)


S3IAMRequest._create_aws_request = create_as_sent

ACCOUNT = "123456789012"
BUCKET = "backups"


def fill(names):
    s3 = get_backend("s3")[ACCOUNT]["aws"]
    s3.create_bucket(BUCKET, "us-east-1")
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    for name in names:
        s3.put_object(BUCKET, name, b"old").last_modified = now - datetime.timedelta(days=730)


def user(access, secret):
    iam = get_backend("iam")[ACCOUNT]["aws"]
    iam.create_user(region_name="us-east-1", user_name="metalmesh", tags=[])
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_user_policy("metalmesh", "backups", policy)
    key = iam.create_access_key("metalmesh")
    Path(access).write_text(key.access_key_id + "\n")
    Path(secret).write_text(key.secret_access_key + "\n")


def main():
    certificate, private, access, secret, *names = sys.argv[1:]
    fill(names)
    user(access, secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, app, threaded=True, ssl_context=context)
    print(f"127.0.0.1:{server.server_port}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


main()
