"""The stand-in as a process: ``python -m airflow_cdc_provider.sandbox.gcs.server PORT PUBLIC_KEY_FILE BUCKET…``. An
empty name of the file allows every request."""

from __future__ import annotations

import gzip
import json
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from airflow_cdc_provider.sandbox.gcs import batches, json_api, xml_api
from airflow_cdc_provider.sandbox.gcs.messages import Request, Response
from airflow_cdc_provider.sandbox.gcs.objects import Buckets
from airflow_cdc_provider.sandbox.gcs.tokens import Tokens
from airflow_cdc_provider.sandbox.gcs.uploads import Uploads


class Service:
    def __init__(self, buckets: Buckets, tokens: Tokens) -> None:
        self.buckets = buckets
        self.tokens = tokens
        self.uploads = Uploads(buckets)

    def answer(self, request: Request) -> Response:
        match (request.method, *request.path):
            case "POST", "token":
                given = self.tokens.exchange(dict(parse_qsl(request.body.decode())))
                return json_api.body(given) if given else json_api.body({"error": "invalid_grant"}, 400)
            case "GET", "computeMetadata", "v1", "instance", "service-accounts", "default", "token":
                return json_api.body(self.tokens.issue())
            case "GET", "":
                return Response(200, b"{}", {"Metadata-Flavor": "Google"})
        if not self.tokens.allows(request.headers.get("authorization", "")):
            return xml_api.failed("AccessDenied", 403)
        return self._allowed(request)

    def _allowed(self, request: Request) -> Response:
        match request.path:
            case "batch", *_:
                return batches.answer(request, self._allowed)
            case "upload", "storage", "v1", "b", bucket, "o":
                return self.uploads.answer(request, bucket)
            case ("download", "storage", "v1", *rest) | ("storage", "v1", *rest):
                inner = Request(request.method, tuple(rest), request.query, request.headers, request.body, request.root)
                return json_api.answer(self.buckets, inner)
        return xml_api.answer(self.buckets, request)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, service: Service, *arguments: object) -> None:
        self._service = service
        super().__init__(*arguments)  # type: ignore[arg-type]

    def handle_request(self) -> None:
        address = urlsplit(self.path)
        path = tuple(unquote(segment) for segment in address.path.removeprefix("/").split("/"))
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        root = f"http://{headers.get('host', '')}"
        response = self._service.answer(Request(self.command, path, query, headers, self._body(), root))
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status != 204:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            content = b"".join(chunks)
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return gzip.decompress(content) if self.headers.get("Content-Encoding") == "gzip" else content

    def log_message(self, format: str, *arguments: object) -> None:
        """One line in the log of the server, without tokens."""
        sys.stderr.write(f"{json.dumps(self.requestline)} {arguments[1] if len(arguments) > 1 else ''}\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def serve(port: int, public_key: str, buckets: list[str]) -> Server:
    service = Service(Buckets(buckets), Tokens(public_key))
    return Server(("127.0.0.1", port), partial(Handler, service))


if __name__ == "__main__":
    port, key_file, *names = sys.argv[1:]
    serve(int(port), Path(key_file).read_text() if key_file else "", names).serve_forever()
