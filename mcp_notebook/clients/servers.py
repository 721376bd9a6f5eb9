"""What a client is told to start or to connect to.

Runs in the process of the command or in a kernel: clients get the interpreter of that process.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_notebook.clients.client import Client, Endpoint, Launch, Remote, Server
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
    """Return what a client is told: a command, or the address of this machine with `http`.

    Args:
        client: Who is told.
        settings: As for `build_launch` and `build_endpoint`.
        notebooks: As for `build_launch`.
        options: As for `build_launch`.
        http: Whether it connects to the HTTP endpoint.
        remote: The server that it reaches by a command.

    Raises:
        ClientError: The client cannot do this, or a file does not exist.
    """
    if not http and remote is None:
        return build_launch(client, settings, notebooks, options)
    if http and remote is not None:
        raise ClientError(
            "--http is for the HTTP endpoint of this machine, and --url for a server elsewhere. "
            "Give one of them."
        )
    extra = [*map(str, notebooks), *options]
    if extra:
        raise ClientError(
            f"{extra[0]!r} has no effect with {'--http' if http else '--url'}: {client.title} does "
            "not start the server then. Give what concerns the server to `mcp-notebook serve`."
        )
    return build_endpoint(client, settings) if remote is None else build_connection(remote)


def build_connection(remote: Remote) -> Launch:
    """Return the command for a client that connects to a remote server.

    Raises:
        ClientError: Its address has a secret in it, or the token's file does not exist.
    """
    if re.search(r"[?&#]token=|^(?:\w+://)?[^/?#]*@", remote.address):
        raise ClientError(
            "The address has a token or a password in it, which would be as public as the client's "
            "settings. Write the token to a file that only you can read, leave it out of the "
            "address, and name the file with --token-file."
        )
    words = ["-P", "-m", "mcp_notebook", "connect", remote.address]
    source = remote.token_source
    if source is not None and not source.startswith(("env:", "keyring:")):
        file = Path(source).expanduser().absolute()
        if not file.is_file():
            raise ClientError(
                f"There is no file {str(file)!r}. Write the token for {remote.address} there."
            )
        source = str(file)
    words += [] if source is None else ["--token-file", source]
    return Launch(command=sys.executable, arguments=tuple(words), env={}, runs_notebooks=False)


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
