"""What a client is told to start or to connect to.

Runs in the process of the command or in a kernel: clients get the interpreter of that process.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_notebook.clients.client import Client, Endpoint, Launch, Server
from mcp_notebook.discovery import read_bridge
from mcp_notebook.errors import ClientError
from mcp_notebook.settings import DEFAULT_PORT, Settings


def build_server(  # noqa: PLR0913 - what there is to say
    client: Client,
    settings: Settings,
    notebooks: Sequence[Path] = (),
    options: Sequence[str] = (),
    *,
    http: bool = False,
    url: str | None = None,
) -> Server:
    """Return what a client is told: the command, or the address with `http`.

    Args:
        client: Who is told.
        settings: As for `build_launch` and `build_endpoint`.
        notebooks: As for `build_launch`.
        options: As for `build_launch`.
        http: Whether it connects to the HTTP endpoint.
        url: As for `build_endpoint`.

    Raises:
        ClientError: The client cannot do this, or a notebook does not exist.
    """
    if not http:
        return build_launch(client, settings, notebooks, options)
    extra = [*map(str, notebooks), *options]
    if extra:
        raise ClientError(
            f"With --http, {client.title} starts nothing, so {extra[0]!r} has no effect. Give it "
            "to `mcp-notebook serve`."
        )
    return build_endpoint(client, settings, url)


def build_launch(
    client: Client,
    settings: Settings,
    notebooks: Sequence[Path] = (),
    options: Sequence[str] = (),
) -> Launch:
    """Return the command for a client, as it works in an empty environment and any folder.

    Args:
        client: Who starts it. It gets ``--meta-tools`` if it does not see new tools.
        settings: Where the records of live kernels are.
        notebooks: Those to run; without any, the command serves all open ones.
        options: Further options of ``mcp-notebook stdio``.

    Raises:
        ClientError: A notebook does not exist.
    """
    for notebook in notebooks:
        if not notebook.is_file():
            raise ClientError(
                f"There is no notebook {str(notebook)!r}. Check the path, or name none to serve "
                "the notebooks that are open."
            )
    # -P: clients start servers in the user's folders, where a random.py must not be imported.
    words = ["-P", "-m", "mcp_notebook", "stdio", *options]
    if not client.sees_new_tools and "--meta-tools" not in options:
        words.append("--meta-tools")
    words += [str(notebook.absolute()) for notebook in notebooks]
    is_usual = settings.home == Settings().home
    return Launch(
        command=sys.executable,
        arguments=tuple(words),
        env={} if is_usual else {"MCP_NOTEBOOK_HOME": str(settings.home.absolute())},
        runs_notebooks=bool(notebooks),
    )


def build_endpoint(client: Client, settings: Settings, url: str | None = None) -> Endpoint:
    """Return the address for a client, with where it reads the token.

    Args:
        client: Who connects.
        settings: Of the bridge that serves it.
        url: The address; None for that of the background bridge, or where it would serve.

    Raises:
        ClientError: The client cannot be given a token without having it in its settings.
    """
    if client.header_from == "nowhere":
        raise ClientError(
            f"{client.title} cannot read a token from a file or a variable, and a token in its "
            "settings would be as public as they are. Leave --http out: it then starts "
            "`mcp-notebook stdio`, which finds all open notebooks."
        )
    if url is None:
        bridge = read_bridge(settings.bridge_file)
        port = settings.port or DEFAULT_PORT
        url = bridge.url if bridge else f"http://127.0.0.1:{port}/mcp"
    # The helper that reads the file for Claude Code is a program of Unix.
    from_file = client.header_from == "file" and not settings.token and sys.platform != "win32"
    return Endpoint(
        url=url,
        token_file=settings.token_path.absolute() if from_file else None,
        token_place=settings.token_place,
    )
