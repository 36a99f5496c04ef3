"""GnuTLS: `gnutls-cli` by priorities, sessions and commands; `gnutls-cli-debug` for what is not."""

import re
import subprocess
import time
from collections.abc import Iterator

from outcomes import Case, expect, first_line
from served import HOST, MEGABYTE, Lab

NAME = "GnuTLS"
ASK = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
LAST = ASK % (b"", b"Connection: close\r\n")
V12, V13 = "NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"
CIPHERS = ["AES-128-GCM", "AES-256-GCM", "CHACHA20-POLY1305"]
GROUPS = ["X25519", "SECP256R1", "SECP384R1"]


def version() -> str:
    return first_line(["gnutls-cli", "--version"])


def run(lab: Lab, priority: str, *words: str, name: str = "localhost",
        typed: tuple[bytes, ...] = (LAST,), wait_s: float = 15) -> tuple[int, bytes]:
    """Its exit status, and what it prints; each text is typed after a pause."""
    command = ["gnutls-cli", "-p", str(lab.server("sites").port), "--x509cafile",
               lab.file("root.pem"), "--sni-hostname", name, "--verify-hostname", name,
               "--priority", priority, *words, HOST]
    with open(lab.files / "gnutls.log", "w+b") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log,
                                   stderr=subprocess.STDOUT)
        try:
            for number, text in enumerate(typed):
                time.sleep(0.4 if number else 0)
                process.stdin.write(text)
                process.stdin.flush()
            # (It ends with the connection.)
            status = process.wait(wait_s)
        except BrokenPipeError:
            status = process.wait(wait_s)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        return status, log.read()


def served(lab: Lab, priority: str, *words: str, told: bytes = b"", pages: int = 1,
           **more: object) -> bytes:
    status, text = run(lab, priority, *words, **more)
    found = text.count(b"The page is here.")
    expect(status == 0 and found == pages, f"{status}, {found} of {pages}: {text[-400:]}")
    expect(told in text, f"no {told}: {text[-800:]}")
    return text


def refused(lab: Lab, priority: str, alert: bytes, *words: str, **more: object) -> None:
    status, text = run(lab, priority, *words, **more)
    expect(status != 0 and b"HTTP/1.1" not in text, "it is served")
    expect(alert in text, f"no `{alert}`: {text[-400:]}")


def one_only(priority: str, kind: str, name: str) -> str:
    return f"{priority}:-{kind}-ALL:+{'' if kind == 'CIPHER' else kind + '-'}{name}"


def cases(lab: Lab) -> Iterator[Case]:
    for told, priority in (("TLS 1.2", V12), ("TLS 1.3", V13)):
        version_told = told.replace(" ", "").encode()
        yield told, lambda p=priority, v=version_told: served(lab, p, told=v)
        for name in CIPHERS:
            yield f"{told}, {name}", lambda p=priority, name=name: served(
                lab, one_only(p, "CIPHER", name), told=f"({name})".encode())
        for name in GROUPS:
            yield f"{told}, {name}", lambda p=priority, name=name: served(
                lab, one_only(p, "GROUP", name), told=f"(ECDHE-{name})".encode(), name="rsa.test")
        for name in ("p384.test", "rsa.test", "ed25519.test"):
            yield f"{told}, the certificate of {name}", lambda p=priority, name=name: served(
                lab, p, name=name)
        yield f"{told}, a session is resumed", lambda p=priority: served(
            lab, p, "--resume", "--waitresumption", told=b"This is a resumed session")
        yield f"{told}, 1 MB", lambda p=priority: megabyte(lab, p)
        yield f"{told}, small records", lambda p=priority: served(
            lab, p + ":%ALLOW_SMALL_RECORDS", "--recordsize", "512")
        yield f"{told}, ranges: padded where it can", lambda p=priority: served(lab, p, "--ranges")
        for client in ("good", "foreign", "revoked", ""):
            yield f"{told}, a client's certificate is required: {client or 'none'}", \
                lambda p=priority, client=client: wanting(lab, p, client)
    yield "TLS 1.3, keys are replaced", lambda: served(
        lab, V13, "--inline-commands", pages=3, told=b"Rekey was completed",
        typed=(ASK % (b"", b""), b"^rekey1^\n", ASK % (b"", b""), LAST))
    yield "TLS 1.2, renegotiation is refused", lambda: renegotiated(lab)
    yield "TLS 1.1 is refused", lambda: refused(
        lab, "NORMAL:-VERS-ALL:+VERS-TLS1.1:%VERIFY_ALLOW_SIGN_WITH_SHA1", b"alert")
    yield "CBC is refused", lambda: refused(
        lab, V12 + ":-CIPHER-ALL:+AES-128-CBC:+AES-256-CBC", b"alert")
    yield "RSA without an exchange of keys is refused", lambda: refused(
        lab, V12 + ":-KX-ALL:+RSA", b"alert", name="rsa.test")
    yield "what gnutls-cli-debug finds", lambda: debug(lab)


def renegotiated(lab: Lab) -> None:
    try:
        _, text = run(lab, V12, "--rehandshake", wait_s=3)
    except subprocess.TimeoutExpired:
        # (After a warning it waits for the hello that it has asked for.)
        text = (lab.files / "gnutls.log").read_bytes()
    expect(b"Rehandshake was completed" not in text, "there was another handshake")
    served(lab, V12)


def megabyte(lab: Lab, priority: str) -> None:
    _, text = run(lab, priority, typed=(ASK % (b"1m.bin", b"Connection: close\r\n"),))
    expect(MEGABYTE in text, f"other bytes, {len(text)} of them")


def wanting(lab: Lab, priority: str, client: str) -> None:
    own = ["--x509certfile", lab.file(f"{client}.pem"), "--x509keyfile",
           lab.file(f"{client}.key")] if client else []
    ask = (LAST.replace(b"localhost", b"required.test"),)
    if client == "good":
        served(lab, priority, *own, name="required.test", typed=ask)
    else:
        refused(lab, priority, b"", *own, name="required.test", typed=ask)


# The lines of gnutls-cli-debug, and what they have to end with.
FOUND = {
    "whether we need to disable TLS 1.2": "no", "whether %NO_EXTENSIONS is required": "no",
    "for TLS 1.0 (RFC2246) support": "no", "for TLS 1.1 (RFC4346) support": "no",
    "for TLS 1.2 (RFC5246) support": "yes", "for TLS 1.3 (RFC8446) support": "yes",
    "TLS1.2 neg fallback from TLS 1.6 to": "TLS1.2", "for certificate chain order": "sorted",
    "for safe renegotiation (RFC5746) support": "yes",
    "for ext master secret (RFC7627) support": "yes", "for heartbeat (RFC6520) support": "no",
    "whether small records (512 bytes) are tolerated on handshake": "yes",
    "whether the server understands TLS closure alerts": "yes",
    "whether the server supports session resumption": "yes",
    "for anonymous authentication support": "no", "for RSA key exchange support": "no",
    "for ephemeral Diffie-Hellman support": "no", "for AES-GCM cipher (RFC5288) support": "yes",
    "for AES-CBC cipher (RFC3268) support": "no", "for 3DES-CBC cipher (RFC2246) support": "no",
    "for ARCFOUR 128 cipher (RFC2246) support": "no", "for MD5 MAC support": "no",
    "for CHACHA20-POLY1305 cipher (RFC7905) support": "yes",
}


def debug(lab: Lab) -> None:
    command = ["gnutls-cli-debug", "-p", str(lab.server("sites").port), HOST]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    found = dict(re.findall(r"^ *(.*?)\.\.\. (.*)$", text, re.MULTILINE))
    for name, wanted in FOUND.items():
        expect(found.get(name) == wanted, f"{name}: {found.get(name)}, not {wanted}")
