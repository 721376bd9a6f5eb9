"""The SDK's server, declaring exactly the capabilities that the bridge has.

Runs on the bridge's event loop; no I/O.
"""

from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions


class DeclaringServer(Server[Any]):
    """The SDK's server, declaring exactly the capabilities that this one has.

    Clients of the handshake era are told that the lists change, which the SDK's HTTP transport
    offers no way to declare. No client can subscribe to a resource, which the SDK declares for
    every server with subscriptions: the content of a resource never changes.
    """

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what the server says of itself, with lists that change."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Return what the server can do."""
        capabilities = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        resources = types.ResourcesCapability(list_changed=True)
        return capabilities.model_copy(update={"resources": resources})
