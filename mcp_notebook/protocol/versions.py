"""The versions of MCP, and what differs between them.

Pure. Up to 2025-11-25 a client opens a session by a handshake (``initialize``). Since 2026-07-28
there are no sessions, and each request describes its client (``_meta``).
"""

from typing import Final

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions with a handshake and sessions."""
MODERN_VERSIONS: Final = ("2026-07-28",)
"""The versions without a handshake."""
VERSIONS: Final = (*HANDSHAKE_VERSIONS, *MODERN_VERSIONS)
"""The supported versions, the oldest first."""
LATEST_HANDSHAKE: Final = HANDSHAKE_VERSIONS[-1]
LATEST_MODERN: Final = MODERN_VERSIONS[-1]
SINCE: Final = {
    "annotations": "2025-03-26",  # the title was one of them until it had a field of its own
    "title": "2025-06-18",
    "_meta": "2025-06-18",
    "outputSchema": "2025-06-18",
    "lastModified": "2025-06-18",
    "resource_link": "2025-06-18",
    "audio": "2025-03-26",
    "icons": "2025-11-25",
}
"""The versions that introduced kinds of content and fields of tools, resources and results."""

PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_KEY = "io.modelcontextprotocol/subscriptionId"
"""Keys of ``_meta`` since 2026-07-28."""
SERVER_NAME = "mcp-notebook"
"""The name in the ``serverInfo`` of all servers of mcp-notebook."""


def has_feature(version: str, feature: str) -> bool:
    """Return whether a version of MCP has a feature that `SINCE` lists."""
    return VERSIONS.index(version) >= VERSIONS.index(SINCE[feature])
