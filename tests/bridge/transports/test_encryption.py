import contextlib
import http.client
import json
import shutil
import socket
import ssl
import subprocess
from urllib.parse import urlsplit

import pytest
from bridges import FEW_DESCRIPTORS, INITIALIZE, LIMIT, TOKEN, bridge

from mcp_notebook.bridge.transports.encryption import check_encryption, describe_reach
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings

OPENSSL = shutil.which("openssl")


@pytest.fixture(scope="module")
def certificate(module_home):
    """A certificate of 127.0.0.1, signed by itself, and its key."""
    if OPENSSL is None:
        pytest.skip("needs openssl")
    certfile, keyfile = module_home / "cert.pem", module_home / "key.pem"
    command = [OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", keyfile, "-out", certfile]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return certfile, keyfile


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "hub.example"])
def test_an_address_for_others_needs_tls_or_a_word(host):
    with pytest.raises(SettingsError) as caught:
        check_encryption(Settings(host=host))
    for word in (host, "--certfile", "--keyfile", "--insecure"):
        assert word in str(caught.value)
    check_encryption(Settings(host=host, insecure=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost"])
def test_this_machine_alone_needs_nothing(host):
    check_encryption(Settings(host=host))
    assert describe_reach(Settings(host=host), 1) is None


def test_an_address_for_others_without_tls_ends_the_bridge_with_one_sentence(home):
    with bridge(home, "serve", "--port", "0", "--host", "0.0.0.0") as running:
        assert running.wait() == 1
        assert len(running.said.splitlines()) == 1
        assert "--insecure" in running.said


@pytest.fixture(scope="module")
def encrypting(certificate, module_home):
    """A bridge with the certificate, and 256 descriptors where they can be limited."""
    certfile, keyfile = certificate
    arguments = ["--port", "0", "--certfile", str(certfile), "--keyfile", str(keyfile)]
    env = {"MCP_NOTEBOOK_TOKEN": TOKEN}
    with bridge(module_home, "serve", *arguments, env=env, command=FEW_DESCRIPTORS) as running:
        yield running
        status, _ = running.end()
        assert status == 0, running.said


def _ask(running, certfile):
    connection = http.client.HTTPSConnection(
        urlsplit(running.url).netloc,
        context=ssl.create_default_context(cafile=certfile),
        timeout=LIMIT,
    )
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    with contextlib.closing(connection):
        connection.request("POST", "/mcp", json.dumps(INITIALIZE), headers)
        return connection.getresponse().status


@pytest.mark.smoke
def test_a_certificate_makes_it_https(encrypting, certificate):
    assert encrypting.url.startswith("https://127.0.0.1:")
    assert _ask(encrypting, certificate[0]) == 200


def test_handshakes_that_do_not_go_on_leave_room_for_others(encrypting, certificate):
    parts = urlsplit(encrypting.url)
    with contextlib.ExitStack() as strangers:
        for number in range(300):
            client = strangers.enter_context(
                socket.create_connection((parts.hostname, parts.port), timeout=LIMIT)
            )
            if number % 2:
                client.sendall(
                    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
                )  # a Client Hello begins
            if not number % 50:
                assert _ask(encrypting, certificate[0]) == 200
        assert _ask(encrypting, certificate[0]) == 200


def test_what_is_not_encrypted_ends_its_own_connection_only(encrypting, certificate):
    parts = urlsplit(encrypting.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=LIMIT) as client:
        client.sendall(b"GET /mcp HTTP/1.1\r\n\r\n")
        assert b"HTTP" not in client.recv(1000)
    assert _ask(encrypting, certificate[0]) == 200


def test_a_certificate_that_cannot_be_used_is_one_sentence(certificate, home):
    certfile, keyfile = certificate
    check_encryption(Settings(host="0.0.0.0", certfile=certfile, keyfile=keyfile))
    for settings in (
        Settings(certfile=home / "nowhere.pem"),
        Settings(certfile=certfile),
        Settings(certfile=keyfile, keyfile=certfile),
        Settings(keyfile=keyfile),
    ):
        with pytest.raises(SettingsError, match="--certfile") as caught:
            check_encryption(settings)
        assert "\n" not in str(caught.value)


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(certificate, home):
    certfile, keyfile = certificate
    locked = home / "locked.pem"
    command = [OPENSSL, "rsa", "-aes256", "-passout", "pass:secret", "-in", keyfile]
    subprocess.run([*command, "-out", locked], check=True, capture_output=True)
    with pytest.raises(SettingsError, match="without a password"):
        check_encryption(Settings(certfile=certfile, keyfile=locked))


def test_what_others_can_reach_is_told_with_its_real_address():
    told = describe_reach(Settings(host="192.168.1.1", insecure=True), 8791)
    assert told == (
        "It listens on 192.168.1.1:8791: other machines can connect (http://192.168.1.1:8791), "
        "without encryption."
    )
    every = describe_reach(Settings(host="0.0.0.0", insecure=True), 8791)
    assert every.startswith("It listens on 0.0.0.0:8791: other machines can connect")
    assert "127.0.0.1" not in every


@pytest.mark.parametrize("missing", ["certfile", "keyfile"])
def test_the_file_that_cannot_be_read_is_the_one_that_is_named(tmp_path, missing):
    files = {"certfile": tmp_path / "cert.pem", "keyfile": tmp_path / "key.pem"}
    for name, path in files.items():
        if name != missing:
            path.write_text("not a PEM file")
    with pytest.raises(SettingsError) as caught:
        check_encryption(Settings(**files))
    assert str(caught.value).startswith(f"The file {files[missing]} cannot be read: No such file")


def test_an_invalid_certificate_is_refused_without_the_words_of_openssl(tmp_path):
    path = tmp_path / "cert.pem"
    path.write_text("not a PEM file")
    with pytest.raises(SettingsError) as caught:
        check_encryption(Settings(certfile=path))
    assert "it is not in PEM format. Check --certfile" in str(caught.value)
    assert "_ssl.c" not in str(caught.value)
