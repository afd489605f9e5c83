"""Images on loopback, for control to find their digests. Their content is made of their names.
Beside those whose name begins with `published` there is a checksum file.
"""

import hashlib
import http.server
import threading


def content(name):
    return f"the system {name}".encode() * 1000


def digest(url):
    """The value of the label `metalmesh.dev/digest`."""
    name = url.rpartition("/")[2]
    return "sha256:" + hashlib.sha256(content(name)).hexdigest()


def labels(url):
    """What control adds to an image without labels of its own."""
    name = url.rpartition("/")[2]
    source = "published" if name.startswith("published") else "fetched"
    return {"metalmesh.dev/digest": digest(url), "metalmesh.dev/digest-source": source}


def url(name):
    return f"http://127.0.0.1:{server.server_port}/{name}"


class Images(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/")
        image, _, suffix = name.rpartition(".")
        if suffix == "sha256" and name.startswith("published"):
            hex = digest(image).removeprefix("sha256:")
            return self.answer(200, f"{hex}  {image}\n".encode())
        if suffix in ("sha256", "sha512", "md5"):
            return self.answer(404, b"")
        self.answer(200, content(name))

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Images)
threading.Thread(target=server.serve_forever, daemon=True).start()
