"""A floor: uvicorn that answers everything with the same few bytes: ``bare_uvicorn.py _ PORT``."""

import sys

import uvicorn

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"3"}]}}'
HEAD = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]


async def app(scope, receive, send) -> None:
    """Read a request and answer it."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await send({"type": "http.response.body", "body": ANSWER})


uvicorn.run(
    app,
    host="127.0.0.1",
    port=int(sys.argv[2]),
    access_log=False,
    log_level="error",
    lifespan="off",
)
