"""The notebooks as Binder has them: what repo2docker would build, started as BinderHub starts it.

The image itself needs Docker. Here its Dockerfile is written, and the environment that it would
make is made with pip.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import venv
from contextlib import contextmanager
from pathlib import Path

import httpx2
import nbformat
import pytest
from clients import over_http, pictures_of, text_of
from jupyter_servers import LOOK, JupyterServer
from live import TIMEOUT, kernel_env, until

pytest.importorskip("repo2docker", reason="needs the extra `hub`")

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
IMAGE = ("jupyter_server==2.*", "jupyterhub==5.*", "jupyterlab==4.*", "notebook==7.*")
"""What repo2docker puts into each image with Python, besides what the repository asks for."""
PREFIX = "/user/ada-rain-1a2b3c/"
TOKEN = "token-that-binderhub-made"
BINDER = {
    "BINDER_REPO_URL": "https://github.com/ada/rain",
    "BINDER_LAUNCH_HOST": "https://mybinder.org/",
    "BINDER_REQUEST": "v2/gh/ada/rain/HEAD",
    "JUPYTERHUB_BASE_URL": "/",
    "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
}


def test_repo2docker_builds_an_image_from_what_is_in_the_folder():
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug"]
    user = ["--user-name=ada", "--user-id=1000"]
    done = subprocess.run([*command, *user, ROOT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "python=3.11" in done.stderr
    lines = done.stdout.splitlines()
    copy = lines.index("COPY --chown=1000:1000 src/ ${REPO_DIR}/")
    (install,) = (line for line in lines if "pip install" in line and "requirements.txt" in line)
    assert "binder/requirements.txt" in install
    assert copy < lines.index(install) < lines.index("RUN ./binder/postBuild")


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The folder of an environment like the image's, with the last step of the build done."""
    folder = tmp_path_factory.mktemp("image") / "venv"
    venv.create(folder, with_pip=True)
    # What builds a package leaves things in the home folder, as rustup does, and uv its locks.
    env = os.environ | {"VIRTUAL_ENV": str(folder), "HOME": str(folder), "TMPDIR": str(folder)}
    env["PATH"] = f"{folder / 'bin'}:{env['PATH']}"
    requirements = ["-r", "binder/requirements.txt", *IMAGE]
    # The last one compiles what a server imports, which may take a minute.
    steps = [".ci/install", *requirements], ["binder/postBuild"], ["jupyter-notebook", "--version"]
    for command in steps:
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return folder


@contextmanager
def binder(image, home):
    """Start the server as BinderHub's spawner does, on a copy of the notebooks."""
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    options = [f"--port={port}", "--ip=127.0.0.1", "--allow-root", "--no-browser"]
    for app in ("NotebookApp", "ServerApp"):
        options += [f"--{app}.base_url={PREFIX}", f"--{app}.token={TOKEN}"]
        options.append(f"--{app}.trust_xheaders=True")
    env = kernel_env(home) | BINDER | {"PATH": f"{image / 'bin'}:{os.environ['PATH']}"}
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [image / "bin" / "jupyter-notebook", *options],
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}{PREFIX}"
    headers = {"Authorization": f"token {TOKEN}"}
    try:
        with httpx2.Client(base_url=url, headers=headers, timeout=TIMEOUT, trust_env=False) as http:
            until(lambda: _is_up(http, server, home), every=LOOK)
            yield JupyterServer(http, home, url, home / "runtime")
    finally:
        server.terminate()
        server.wait(TIMEOUT)


def _is_up(http, server, home):
    assert server.poll() is None, (home / "server.log").read_text()
    try:
        return http.get("api/status").is_success
    except httpx2.TransportError:
        return False


def cells_of(name):
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def server(image, module_home):
    """The server of a Binder with two notebooks that have run; what their first cells showed."""
    with binder(image, module_home) as server:
        shown = {}
        for name in ("weather", "first_look", "results_gallery"):
            kernel_id = server.start_kernel(path=f"notebooks/{name}.ipynb")
            first, *_ = server.run(kernel_id, *cells_of(f"{name}.ipynb"))
            shown[name] = first
        yield server, shown


def test_the_first_cell_shows_the_public_address_and_a_line_for_a_client_but_no_token(server):
    _, shown = server
    for output in shown.values():
        card = output.displays[0]
        assert f"https://HOST{PREFIX}mcp-notebook" in card["text/plain"]
        assert "mcp-notebook install claude-desktop --url" in card["text/html"]
        assert TOKEN not in json.dumps(output.displays)


async def test_a_client_outside_calls_the_tools_with_binders_token(server):
    jupyter, _ = server
    async with over_http(f"{jupyter.url}mcp-notebook/weather", "auto", token=TOKEN) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"monthly_rain", "plot_temperature"} <= tools
        assert text_of(await client.call_tool("monthly_rain", {"year": 2015}))
        assert pictures_of(await client.call_tool("plot_temperature", {"city": "Seattle"}))


async def test_the_gallery_of_results_works_there(server):
    jupyter, _ = server
    async with over_http(
        f"{jupyter.url}mcp-notebook/results_gallery", "legacy", token=TOKEN
    ) as client:
        for name in ("figure_returned", "frame", "sound", "styled", "polars_frame", "formula"):
            result = await client.call_tool(name, {})
            assert not result.is_error, text_of(result)
            assert result.content


def test_without_the_token_nothing_is_answered(server):
    jupyter, _ = server
    answer = httpx2.post(f"{jupyter.url}mcp-notebook", json={}, trust_env=False, timeout=TIMEOUT)
    assert answer.status_code == 401
