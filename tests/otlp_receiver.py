"""A collector of spans on loopback, as OpenTelemetry's exporter finds it; for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from live import TIMEOUT


class Receiver:
    """Keeps the spans that come in over OTLP/HTTP."""

    def __init__(self, port: int) -> None:
        self.env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "NO_PROXY": "*",
        }
        """What a process needs to send spans here, soon after they end."""
        self.spans: list[dict[str, Any]] = []
        self._news = threading.Condition()

    def take(self, body: bytes) -> None:
        """Take one request of an exporter."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
            ExportTraceServiceRequest,
        )

        request = ExportTraceServiceRequest.FromString(body)
        with self._news:
            for resource in request.resource_spans:
                process = _read_attributes(resource.resource.attributes)
                for scope in resource.scope_spans:
                    self.spans += [_read_span(span, process) for span in scope.spans]
            self._news.notify_all()

    def wait_for(self, trace_id: int, count: int) -> list[dict[str, Any]]:
        """Wait until so many spans of a trace have come, and return them."""

        def select() -> list[dict[str, Any]]:
            return [span for span in self.spans if span["trace"] == f"{trace_id:032x}"]

        with self._news:
            assert self._news.wait_for(lambda: len(select()) >= count, TIMEOUT), self.spans
            return select()


def _read_attributes(attributes: Any) -> dict[str, Any]:
    return {
        item.key: getattr(item.value, str(item.value.WhichOneof("value"))) for item in attributes
    }


def _read_span(span: Any, process: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "kind": span.kind,
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "error": span.status.code == 2,
        "attributes": _read_attributes(span.attributes),
        "process": process,
    }


@contextmanager
def receive_spans() -> Iterator[Receiver]:
    """Listen for spans for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
