"""A log server: syslog over TLS (RFC 5425), or a collector of OpenTelemetry's logs over HTTPS that
reads them with the published protobuf types. Writes the JSON of each record as a line of a file.

    log_server.py syslog|otlp CERTIFICATE KEY OUT
"""

import http.server
import json
import ssl
import socketserver
import sys

kind, certificate, key, out = sys.argv[1:]
out = open(out, "a", buffering=1)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


class Syslog(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            length = b""
            while not length.endswith(b" "):
                byte = self.rfile.read(1)
                if not byte:
                    return
                length += byte
            message = self.rfile.read(int(length)).decode()
            head, version, rest = message.partition(">1 ")
            assert head.startswith("<") and version, message
            time, host, app, process, kind, data, record = rest.split(" ", 6)
            assert (app, kind, data) == ("metalmeshd", "audit", "-"), message
            assert time.endswith("Z") and int(process) > 0 and host, message
            out.write(json.dumps(json.loads(record)) + "\n")


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls = 0

    def do_POST(self):
        from google.protobuf import json_format
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs

        body = self.rfile.read(int(self.headers["content-length"]))
        Collector.calls += 1
        if self.headers["authorization"] != "Bearer collectors-token":
            return self.answer(401, b"who are you")
        # What a busy collector says.
        if Collector.calls == 1:
            return self.answer(503, b"busy")
        request = json_format.Parse(body, logs.ExportLogsServiceRequest())
        for resource in request.resource_logs:
            names = {it.key: it.value.string_value for it in resource.resource.attributes}
            assert names["service.name"] == "metalmeshd", names
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    line = json.loads(record.body.string_value)
                    assert record.time_unix_nano == line["time_ms"] * 1_000_000, record
                    assert record.severity_number in (9, 10, 13), record
                    out.write(json.dumps(line) + "\n")
        self.answer(200, b"{}")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def get_request(self):
        connection, peer = super().get_request()
        return context.wrap_socket(connection, server_side=True), peer


with Server(("127.0.0.1", 0), Syslog if kind == "syslog" else Collector) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
