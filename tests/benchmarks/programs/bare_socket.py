"""A floor: a thread that answers whatever comes on a socket at once: ``bare_socket.py _ PORT``.

No loop, no parser: what two processes take to hand each other a request and an answer.
"""

import socket
import sys
import threading

BODY = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"3"}]}}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY


def answer(connection: socket.socket) -> None:
    """Answer one client, whose requests are small enough to come in one piece."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while connection.recv(65536):
        connection.sendall(ANSWER)


with socket.create_server(("127.0.0.1", int(sys.argv[2]))) as listening:
    while True:
        threading.Thread(target=answer, args=[listening.accept()[0]], daemon=True).start()
