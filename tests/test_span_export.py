"""When spans leave the process, and where to."""

import socket
import subprocess
import sys
import time

import pytest
from otlp_receiver import receive_spans

from mcp_notebook.errors import MissingLibrary
from mcp_notebook.span_export import CLOSE_LIMIT, close_provider, is_configured, open_provider

pytest.importorskip("opentelemetry.sdk.trace")
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://localhost:4318/v1/metrics"}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "None"}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "TRUE"}, False),
    ],
)
def test_calls_are_traced_if_opentelemetrys_variables_say_where_to(env, expected):
    assert is_configured(env) is expected


def end_a_span(provider):
    span = provider.get_tracer("test").start_span("work")
    span.end()
    return span.get_span_context().trace_id


@pytest.mark.smoke
def test_spans_go_where_opentelemetrys_variables_say(monkeypatch):
    with receive_spans() as receiver:
        for name, value in receiver.env.items():
            monkeypatch.setenv(name, value)
        provider = open_provider("a-service")
        trace_id = end_a_span(provider)
        close_provider(provider)
        (span,) = receiver.wait_for(trace_id, 1)
    assert span["name"] == "work"
    assert span["process"]["service.name"] == "a-service"


def test_the_name_of_the_service_can_be_set(monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "chosen")
    provider = open_provider("a-service", {"OTEL_TRACES_EXPORTER": "console"})
    assert provider.resource.attributes["service.name"] == "chosen"
    provider.shutdown()


def test_spans_on_the_console_are_kept_from_stdout_where_mcp_is(capsys):
    provider = open_provider("a-service", {"OTEL_TRACES_EXPORTER": "console"})
    end_a_span(provider)
    close_provider(provider)
    printed = capsys.readouterr()
    assert '"name": "work"' in printed.err
    assert not printed.out


def test_several_exporters_can_be_named():
    provider = open_provider("a-service", {"OTEL_TRACES_EXPORTER": "console, otlp"})
    processors = provider._active_span_processor._span_processors
    exporters = [type(processor.span_exporter).__name__ for processor in processors]
    assert exporters == ["ConsoleSpanExporter", "OTLPSpanExporter"]
    close_provider(provider)


@pytest.mark.parametrize(
    ("env", "library"),
    [
        ({"OTEL_TRACES_EXPORTER": "nosuch_thing"}, "opentelemetry-exporter-nosuch-thing"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "opentelemetry-exporter-otlp-proto-grpc"),
    ],
)
def test_an_exporter_that_is_not_installed_is_named(env, library):
    with pytest.raises(MissingLibrary, match=f"needs the library {library},"):
        open_provider("a-service", env)


def test_without_the_library_one_is_told_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingLibrary, match=r"pip install -e '\.\[observability\]'"):
        open_provider("a-service")


@pytest.mark.slow
def test_a_bridge_that_traces_nothing_does_not_load_the_sdk():
    script = (
        "import sys\n"
        "from mcp_notebook.bridge import app\n"
        "app._open_spans()\n"
        "print('opentelemetry.sdk' in sys.modules)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_a_collector_that_never_answers_does_not_keep_the_process(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}"
        )
        provider = open_provider("a-service")
        end_a_span(provider)
        began = time.monotonic()
        close_provider(provider)
        # Left alone, the SDK would wait for 30 s.
        assert CLOSE_LIMIT <= time.monotonic() - began < 20
