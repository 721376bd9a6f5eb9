"""What `doctor` says about what all clients share."""

import json
import os
import sys
from dataclasses import replace

import pytest
from limits_files import set_limits
from live import live_kernel
from msgspec import structs

from mcp_notebook._version import __version__
from mcp_notebook.discovery.records import BridgeRecord, read_start_time
from mcp_notebook.doctor.machine import examine_machine
from mcp_notebook.settings.private_files import write_private_json
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio


async def find(settings, word):
    """Return the one finding that has a word."""
    (finding,) = [one for one in await examine_machine(settings) if word in one.text]
    return finding


@pytest.mark.smoke
async def test_a_new_machine_has_nothing_wrong_and_says_what_to_do_first(settings):
    findings = await examine_machine(settings)
    assert not [finding for finding in findings if finding.state == "wrong"]
    assert f"mcp-notebook {__version__}, Python " in findings[0].text
    assert sys.executable in findings[0].text
    assert (
        "%load_ext mcp_notebook" in (await find(settings, "No open notebook has loaded")).next_step
    )
    assert not settings.home.exists(), "it changes nothing"


async def test_open_notebooks_are_listed_with_their_tools(home, settings):
    with live_kernel(home, notebook=str(home / "rain.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        finding = await find(settings, "The notebook rain")
        assert (finding.state, finding.tools) == ("noted", None)
        kernel.ok("%%mcp_tool\ndef add(a: int):\n    return a")
        finding = await find(settings, "The notebook rain")
    assert (finding.state, finding.text) == ("right", "The notebook rain: 1 tool (add).")
    assert finding.tools == ("add",)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
async def test_a_home_folder_that_others_write_to_is_named(settings):
    settings.home.mkdir()
    settings.home.chmod(0o777)
    finding = await find(settings, "Its folder")
    assert (finding.state, finding.next_step) == ("wrong", f"Run `chmod 700 {settings.home}`.")


async def test_a_file_in_the_place_of_the_home_folder_is_named(settings):
    settings.home.write_text("")
    finding = await find(settings, "Its folder")
    assert finding.state == "wrong"
    assert "is not a folder" in finding.text


async def test_an_audit_log_that_cannot_be_written_is_named(home, settings):
    settings = replace(settings, audit_file=home)
    finding = await find(settings, "The audit log")
    assert finding.state == "wrong"
    assert "MCP_NOTEBOOK_AUDIT_FILE" in finding.next_step
    off = await find(replace(settings, audit=False), "The audit log is off")
    assert off.state == "noted"


async def test_a_background_bridge_that_does_not_answer_or_is_older_is_named(settings):
    record = BridgeRecord(
        pid=os.getpid(),
        started=read_start_time(os.getpid()),
        version=__version__,
        url="http://127.0.0.1:9/mcp",
    )
    write_private_json(settings.bridge_file, record)
    finding = await find(settings, "does not answer at http://127.0.0.1:9/mcp")
    assert "%mcp serve" in finding.next_step
    older = structs.replace(record, version="0.0.1")
    write_private_json(settings.bridge_file, older)
    assert (await find(settings, "is mcp-notebook 0.0.1")).state == "wrong"


async def test_a_server_extension_that_is_switched_off_is_named(settings, home, monkeypatch):
    pytest.importorskip("jupyter_server")
    assert (await find(settings, "The Jupyter Server")).state == "right"
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(home))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    extensions = {"ServerApp": {"jpserver_extensions": {"mcp_notebook": False}}}
    (home / "jupyter_server_config.json").write_text(json.dumps(extensions))
    finding = await find(settings, "The Jupyter Server")
    assert (finding.state, "disabled" in finding.text) == ("noted", True)
    assert "jupyter server extension enable mcp_notebook" in finding.next_step


async def test_the_limits_in_force_are_said(home):
    async def said(**env):
        settings = Settings.from_environment({"MCP_NOTEBOOK_HOME": str(home)} | env)
        return (await find(settings, "The limits")).text

    assert await said() == "The limits are 'normal', by default."
    file = set_limits(home, max_calls=7, task_ttl=3_600)
    assert await said(**file) == f"The limits in {file['MCP_NOTEBOOK_LIMITS']}: max_calls = 7."


async def test_an_unknown_setting_is_named(settings, monkeypatch):
    monkeypatch.setenv("MCP_NOTEBOOK_HOEM", "/x")
    finding = await find(settings, "MCP_NOTEBOOK_HOEM")
    assert finding.next_step == "Did you mean MCP_NOTEBOOK_HOME?"
