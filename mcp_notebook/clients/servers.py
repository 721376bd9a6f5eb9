"""Builds the command that a client starts, or the endpoint that it connects to.

Runs in the process of the command or in a kernel; the command uses that process's interpreter.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcp_notebook.clients.client import (
    TOKEN_VARIABLE,
    Client,
    Endpoint,
    Launch,
    Remote,
    Server,
)
from mcp_notebook.discovery.records import read_bridge
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings


def build_server(  # noqa: PLR0913 - what there is to say
    client: Client,
    settings: Settings,
    notebooks: Sequence[Path] = (),
    options: Sequence[str] = (),
    *,
    http: bool = False,
    remote: Remote | None = None,
) -> Server:
    """Return the server for a client: a command, or with `http` this machine's endpoint.

    Args:
        client: The client.
        settings: As for `build_launch` and `build_endpoint`.
        notebooks: As for `build_launch`.
        options: As for `build_launch`.
        http: Whether the client itself connects over HTTP.
        remote: A server that runs already. Unless `http` is set, the client reaches it through a
            command.

    Raises:
        ClientError: The client does not support this, or a file does not exist.
    """
    if not http and remote is None:
        return build_launch(client, settings, notebooks, options)
    extra = [*map(str, notebooks), *options]
    if extra:
        raise ClientError(
            f"{extra[0]!r} has no effect with {'--http' if http else '--url'}, because "
            f"{client.title} does not start the server. Pass it to `mcp-notebook serve`."
        )
    if remote is None:
        return build_endpoint(client, settings)
    if not http:
        return build_connection(remote)
    _check_secrets(remote)
    token_file = _find_token_file(remote)
    if token_file is not None:
        settings = replace(settings, token=None, token_file=token_file)
    endpoint = build_endpoint(client, settings, remote.address)
    if token_file is not None or remote.token_source is None:
        return endpoint
    if remote.token_source == f"env:{TOKEN_VARIABLE}":
        place = f"the environment variable {TOKEN_VARIABLE}"
        return replace(endpoint, token_file=None, token_place=place)
    raise ClientError(
        f"With --http, {client.title} reads the token itself, from a file or from "
        f"{TOKEN_VARIABLE}. Omit --http, or name a file or env:{TOKEN_VARIABLE} with --token-file."
    )


def _check_secrets(remote: Remote) -> None:
    if re.search(r"[?&#]token=|^(?:\w+://)?[^/?#]*@", remote.address):
        raise ClientError(
            "The address contains a token or a password, which anyone who reads the client's "
            "settings would see. Write the token to a file that only you can read, name the file "
            "with --token-file, and remove the token from the address."
        )


def _find_token_file(remote: Remote) -> Path | None:
    """Return the file with the token; None if it is nowhere or elsewhere."""
    source = remote.token_source
    if source is None or source.startswith("env:"):
        return None
    file = Path(source).expanduser().absolute()
    if not file.is_file():
        raise ClientError(
            f"There is no file {str(file)!r}. Write the token for {remote.address} there."
        )
    return file


def build_connection(remote: Remote) -> Launch:
    """Return the command for a client that connects to a remote server.

    Raises:
        ClientError: The address contains a secret, or the token's file does not exist.
    """
    _check_secrets(remote)
    words = ["-P", "-m", "mcp_notebook", "connect", remote.address]
    source = _find_token_file(remote) or remote.token_source
    words += [] if source is None else ["--token-file", str(source)]
    return Launch(command=sys.executable, arguments=tuple(words), env={}, runs_notebooks=False)


def build_launch(
    client: Client,
    settings: Settings,
    notebooks: Sequence[Path] = (),
    options: Sequence[str] = (),
) -> Launch:
    """Return the command for a client. It works in an empty environment and in any folder.

    Args:
        client: The client. It gets ``--meta-tools`` if it does not notice new tools.
        settings: Name the folder of kernels' records.
        notebooks: Notebooks to run, or folders of notebooks; if none, the command serves all open
            notebooks.
        options: Further options of ``mcp-notebook stdio``.

    Raises:
        ClientError: A notebook does not exist.
    """
    for notebook in notebooks:
        if not notebook.exists():
            raise ClientError(
                f"The notebook {str(notebook)!r} does not exist. Check the path, or name no "
                "notebook to serve all open ones."
            )
    # -P: clients start servers in the user's folders, whose random.py must not be imported.
    words = ["-P", "-m", "mcp_notebook", "stdio", *options]
    if not client.sees_new_tools and not any(each.startswith("--meta-tools") for each in options):
        words.append("--meta-tools")
    words += [str(notebook.absolute()) for notebook in notebooks]
    is_usual = settings.home == Settings().home
    return Launch(
        command=sys.executable,
        arguments=tuple(words),
        env={} if is_usual else {"MCP_NOTEBOOK_HOME": str(settings.home.absolute())},
        runs_notebooks=any(not notebook.is_dir() for notebook in notebooks),
    )


def build_endpoint(client: Client, settings: Settings, url: str | None = None) -> Endpoint:
    """Return the endpoint for a client, and where the client reads the token.

    Args:
        client: The client.
        settings: The settings of the bridge.
        url: The address; None for that of the background bridge, or the one that it would get.

    Raises:
        ClientError: The client can read a token only from its settings.
    """
    if client.header_from == "nowhere":
        raise ClientError(
            f"{client.title} cannot read a token from a file or an environment variable, and "
            "anyone who reads its settings would see a token there. Omit --http: the client then "
            "starts `mcp-notebook stdio`, which finds all open notebooks."
        )
    if url is None:
        bridge = read_bridge(settings.bridge_file)
        port = settings.port or DEFAULT_PORT
        url = bridge.url if bridge else f"http://127.0.0.1:{port}/mcp"
    # Claude Code reads the file with `sed`, which Windows does not have.
    from_file = client.header_from == "file" and not settings.token and sys.platform != "win32"
    return Endpoint(
        url=url,
        token_file=settings.token_path.absolute() if from_file else None,
        token_place=settings.token_place,
    )
