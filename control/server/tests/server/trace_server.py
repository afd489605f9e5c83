"""A collector of OpenTelemetry's traces over HTTP, or HTTPS with a token, that reads them with the
published protobuf types. Writes each span as a line of JSON to a file.

    trace_server.py OUT [CERTIFICATE KEY]
"""

import http.server
import json
import ssl
import sys

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

out = open(sys.argv[1], "a", buffering=1)
tls = sys.argv[2:]


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Collector.calls += 1
        if self.path != "/v1/traces" or self.headers["content-type"] != "application/x-protobuf":
            return self.answer(404)
        if tls and self.headers["authorization"] != "Bearer collectors-token":
            return self.answer(401)
        # What a busy collector says.
        if Collector.calls == 1:
            return self.answer(503)
        request = traces.ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            names = {it.key: it.value.string_value for it in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
                    assert span.start_time_unix_nano <= span.end_time_unix_nano, span
                    line = {
                        "service": names["service.name"],
                        "resource": names,
                        "name": span.name,
                        "trace": span.trace_id.hex(),
                        "id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "kind": span.kind,
                        "error": span.status.message if span.status.code == 2 else None,
                        "attributes": {it.key: it.value.string_value for it in span.attributes},
                        "events": [it.name for it in span.events],
                        "began": span.start_time_unix_nano,
                        "ended": span.end_time_unix_nano,
                    }
                    out.write(json.dumps(line) + "\n")
        self.answer(200)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()
