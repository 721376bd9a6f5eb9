"""Export of spans with OpenTelemetry's SDK, configured by its own environment variables.

Runs in the bridge and in kernels, only if tracing is enabled: importing the SDK takes half a
second. Uses a provider of its own and never sets the global one, which belongs to the notebook's
author.
"""

import os
import sys
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_notebook._version import __version__
from mcp_notebook.errors import MissingLibrary

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

CLOSE_LIMIT = 1.0
"""Seconds for exporting the last spans; a collector may not answer."""
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
"""Entry points of OpenTelemetry's own exporter, by protocol."""
_EXPORTERS = "opentelemetry_traces_exporter"
"""The group of entry points of all exporters."""


def is_configured(env: Mapping[str, str]) -> bool:
    """Return whether OpenTelemetry's variables configure an exporter."""
    exporters = env.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporters == "none":
        return False
    return bool(exporters or any(env.get(name) for name in _ENDPOINTS))


def open_provider(service: str, env: Mapping[str, str] | None = None) -> "TracerProvider":
    """Return a provider with the exporters that the variables configure; see `close_provider`.

    Args:
        service: The service name, unless ``OTEL_SERVICE_NAME`` is set.
        env: The environment; None for that of the process, which exporters read in any case.

    Raises:
        MissingLibrary: The SDK or an exporter is not installed.
    """
    try:
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - slow
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - slow
    except ImportError as error:
        raise MissingLibrary("Tracing needs", "opentelemetry-sdk", "observability") from error
    makers = [_load_exporter(name) for name in _list_exporters(os.environ if env is None else env)]
    provider = TracerProvider(resource=_describe_process(service), shutdown_on_exit=False)
    for make_exporter in makers:
        provider.add_span_processor(BatchSpanProcessor(make_exporter()))
    return provider


def close_provider(provider: "TracerProvider") -> None:
    """Export the last spans, within `CLOSE_LIMIT`."""
    thread = threading.Thread(target=provider.shutdown, name="mcp-notebook-spans", daemon=True)
    thread.start()
    thread.join(CLOSE_LIMIT)


def _list_exporters(env: Mapping[str, str]) -> list[str]:
    """Return the entry points of the exporters that the variables name."""
    names = [name.strip() for name in env.get("OTEL_TRACES_EXPORTER", "").lower().split(",")]
    chosen = [name for name in names if name and name != "none"] or ["otlp"]
    protocol = env.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or env.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL", ""
    )
    otlp = _OTLP.get(protocol.strip().lower(), "otlp_proto_http")
    return [otlp if name == "otlp" else name for name in chosen]


def _load_exporter(name: str) -> Any:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415 - slow

        return partial(ConsoleSpanExporter, out=sys.stderr)  # over stdio, stdout belongs to MCP
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    for entry_point in entry_points(group=_EXPORTERS, name=name):
        try:
            return entry_point.load()
        except ImportError:
            break  # half of a package
    library = f"opentelemetry-exporter-{name.replace('_', '-')}"
    raise MissingLibrary(f"The exporter of traces {name!r} needs", library, "observability")


def _describe_process(service: str) -> "Resource":
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415 - slow

    resource = Resource.create({"service.version": __version__})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: service}))
    return resource
