"""HTTPS by the flags that users of other servers know, and what applications learn of it."""

import json
import socket
import ssl
import subprocess

import pytest
from conftest import Answer, free_port, read_all

ASGI = """
import json

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    text = json.dumps([scope["scheme"], scope["extensions"].get("tls")]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})
"""

WSGI = """
import json

def app(environ, start_response):
    start_response("200 OK", [])
    found = {key: value for key, value in environ.items() if key.startswith(("SSL_", "HTTPS"))}
    return [json.dumps([environ["wsgi.url_scheme"], found]).encode()]
"""

NATIVE = """
import gustnado

app = gustnado.App()

@app.get("/")
def told(request):
    return [request.scheme, None]
"""


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A certificate of the server, and one of a client by an authority of its own."""
    folder = tmp_path_factory.mktemp("tls")
    for name, subject, more in [
        ("server", "/CN=localhost", ["-addext", "subjectAltName=DNS:localhost"]),
        ("ca", "/CN=authority", []),
    ]:
        openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout",
                "-out", f"{name}.key")
        openssl(folder, "req", "-x509", "-key", f"{name}.key", "-subj", subject,
                "-out", f"{name}.pem", *more)
    openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "client.key")
    openssl(folder, "req", "-new", "-key", "client.key", "-subj", "/O=Example/CN=client",
            "-out", "client.csr")
    # Extensions make it one of version 3.
    (folder / "extensions").write_text("basicConstraints=CA:FALSE\n")
    openssl(folder, "x509", "-req", "-in", "client.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-extfile", "extensions", "-out", "client.pem")
    return folder


def ask(port, files, client=False, version=None):
    context = ssl.create_default_context(cafile=files / "server.pem")
    if client:
        context.load_cert_chain(files / "client.pem", files / "client.key")
    if version:
        context.maximum_version = version
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as link:
            link.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = Answer(read_all(link))
    assert answer.status == 200
    return json.loads(answer.body)


@pytest.mark.parametrize("cert, key", [
    ("--tls-cert", "--tls-key"), ("--ssl-certfile", "--ssl-keyfile"),
    ("--certfile", "--keyfile"), ("--ssl-certificate", "--ssl-keyfile"),
])
def test_each_pair_of_flags_serves_https(run, files, cert, key):
    server = run(ASGI, cert, str(files / "server.pem"), key, str(files / "server.key"))
    scheme, tls = ask(server.port, files)
    assert scheme == "https"
    assert tls["tls_version"] == 0x0304 and tls["cipher_suite"] >> 8 == 0x13
    assert (tls["client_cert_chain"], tls["client_cert_name"]) == ([], None)
    assert tls["server_cert"] == (files / "server.pem").read_text()
    _, older = ask(server.port, files, version=ssl.TLSVersion.TLSv1_2)
    assert older["tls_version"] == 0x0303


@pytest.mark.parametrize("records", ["own", "rustls"])
def test_an_application_sees_the_clients_certificate(run, files, records):
    pair = ["--ssl-certfile", str(files / "server.pem"), "--ssl-keyfile",
            str(files / "server.key"), "--tls-records", records]
    wanted = ["--ssl-ca-certs", str(files / "ca.pem"), "--ssl-cert-reqs", "2"]
    server = run(ASGI, *pair, *wanted)
    _, tls = ask(server.port, files, client=True)
    assert tls["client_cert_name"] == "CN=client,O=Example"
    assert tls["client_cert_chain"][0] == (files / "client.pem").read_text()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(server.port, files)


def test_wsgi_has_the_names_of_mod_ssl(run, files):
    pair = ["--certfile", str(files / "server.pem"), "--keyfile", str(files / "server.key")]
    server = run(WSGI, *pair, "--ca-certs", str(files / "ca.pem"), "--cert-reqs", "CERT_OPTIONAL")
    scheme, found = ask(server.port, files)
    assert (scheme, found["HTTPS"], found["SSL_CLIENT_VERIFY"]) == ("https", "on", "NONE")
    _, found = ask(server.port, files, client=True)
    assert found["SSL_PROTOCOL"] == "TLSv1.3" and found["SSL_CLIENT_VERIFY"] == "SUCCESS"
    assert found["SSL_CLIENT_S_DN"] == "CN=client,O=Example"


def test_a_native_handler_knows_the_scheme(run, files):
    server = run(NATIVE, "--tls-cert", str(files / "server.pem"),
                 "--tls-key", str(files / "server.key"))
    assert ask(server.port, files)[0] == "https"


def test_hypercorns_flags_serve_https(run, files):
    pair = ["--certfile", str(files / "server.pem"), "--keyfile", str(files / "server.key")]
    wanted = ["--ca-certs", str(files / "ca.pem"), "--verify-mode", "CERT_OPTIONAL"]
    _, tls = ask(run(ASGI, *pair, *wanted).port, files, client=True)
    assert tls["client_cert_name"] == "CN=client,O=Example"


def test_a_listener_says_what_it_speaks(run, files):
    pair = ["--certfile", str(files / "server.pem"), "--keyfile", str(files / "server.key")]
    plain = free_port()
    binds = ["--bind", "https://127.0.0.1:{port}", "--bind", f"http://127.0.0.1:{plain}"]
    server = run(ASGI, *pair, *binds)
    assert ask(server.port, files)[0] == "https"
    with socket.create_connection(("127.0.0.1", plain), timeout=10) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert json.loads(Answer(read_all(link)).body) == ["http", None]
    both = f"https://127.0.0.1:{server.port}/ and http://127.0.0.1:{plain}/"
    server.wait_for_words(both)


def test_a_wrong_pair_is_named_with_its_file(run, files):
    server = run(NATIVE, "--tls-cert", str(files / "server.pem"),
                 "--tls-key", str(files / "ca.key"), waits=False)
    assert server.process.wait(20) == 1
    assert "ca.key: the key is not that of the first certificate" in server.said()
