"""openssl: `s_client` by versions, ciphers, groups, sessions, names and commands; `s_time`."""

import re
import subprocess
import threading
import time
from collections.abc import Iterator

from outcomes import Case, Skipped, expect, first_line
from served import HOST, Lab, Server

NAME = "openssl"
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CIPHERS_13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
CIPHERS_12 = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]
GROUPS = ["X25519", "P-256", "P-384"]
GROUPS_REFUSED = ["P-521", "X448", "ffdhe2048", "ffdhe3072"]


def version() -> str:
    return first_line(["openssl", "version"])


def s_client(lab: Lab, server: Server, *words: str, name: str = "localhost", ask: bytes = ASK,
             ends: bool = True) -> str:
    """What it prints for one connection that asks for a page, the page included."""
    named = ["-servername", name] if name else ["-noservername"]
    command = ["openssl", "s_client", "-connect", f"{HOST}:{server.port}", *named,
               "-CAfile", lab.file("root.pem"), *(["-ign_eof"] if ends else []), *words]
    done = subprocess.run(command, input=ask, capture_output=True, timeout=15)
    return (done.stdout + done.stderr).decode(errors="replace")


def served(text: str) -> str:
    expect("HTTP/1.1 200" in text and "The page is here." in text, f"no page: {text[-400:]}")
    expect("Verify return code: 0 (ok)" in text or "Verification: OK" in text, "not verified")
    return text


def refused(text: str, alert: str = "") -> None:
    expect("HTTP/1.1" not in text, "it was served")
    expect(alert in text, f"no `{alert}`: {text[-400:]}")


def speaks(lab: Lab, words: list[str], wanted: str, name: str = "localhost") -> None:
    text = served(s_client(lab, lab.server("sites"), *words, name=name))
    expect(wanted in text, f"no `{wanted}` in: {text[:2000]}")


def versions(lab: Lab) -> Iterator[Case]:
    yield "TLS 1.2", lambda: speaks(lab, ["-tls1_2"], "New, TLSv1.2")
    yield "TLS 1.3", lambda: speaks(lab, ["-tls1_3"], "New, TLSv1.3")
    for word, told in (("-tls1_1", "TLS 1.1"), ("-tls1", "TLS 1.0")):
        old = [word, "-cipher", "ALL:@SECLEVEL=0"]
        yield f"{told} is refused with protocol_version", lambda old=old: refused(
            s_client(lab, lab.server("sites"), *old), "alert number 70")
    yield "TLS 1.2 is refused where 1.3 is the oldest", lambda: refused(
        s_client(lab, lab.server("only13"), "-tls1_2"), "alert number 70")
    yield "TLS 1.3 where it is the oldest", lambda: served(
        s_client(lab, lab.server("only13"), "-tls1_3"))


def ciphers(lab: Lab) -> Iterator[Case]:
    for cipher in CIPHERS_13:
        yield cipher, lambda cipher=cipher: speaks(
            lab, ["-tls1_3", "-ciphersuites", cipher], f"Cipher is {cipher}")
    for kind, site in (("ECDSA", "localhost"), ("RSA", "rsa.test")):
        for cipher in (f"ECDHE-{kind}-{end}" for end in CIPHERS_12):
            yield cipher, lambda cipher=cipher, site=site: speaks(
                lab, ["-tls1_2", "-cipher", cipher], f"Cipher is {cipher}", site)
    yield "no other cipher of TLS 1.2", lambda: no_other_cipher(lab)
    if not lab.quick:
        yield "each other cipher of TLS 1.2 by itself", lambda: each_other_cipher(lab)
    ccm = ["-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256:TLS_AES_128_CCM_8_SHA256"]
    yield "no CCM of TLS 1.3", lambda: refused(
        s_client(lab, lab.server("sites"), *ccm), "alert number 40")


def other_ciphers() -> list[str]:
    words = ["openssl", "ciphers", "-tls1_2", "-s", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"]
    every = subprocess.run(words, capture_output=True, text=True, timeout=15).stdout.strip()
    ours = [f"ECDHE-{kind}-{end}" for kind in ("ECDSA", "RSA") for end in CIPHERS_12]
    others = [name for name in every.split(":") if name not in ours and "_" not in name]
    expect(len(others) > 20, f"openssl has few ciphers: {every}")
    return others


def no_other_cipher(lab: Lab) -> None:
    words = ["-tls1_2", "-cipher", ":".join(other_ciphers()) + ":@SECLEVEL=0"]
    for name in ("localhost", "rsa.test"):
        refused(s_client(lab, lab.server("sites"), *words, name=name), "alert number 40")


def each_other_cipher(lab: Lab) -> None:
    for cipher in other_ciphers():
        words = ["-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0"]
        text = s_client(lab, lab.server("sites"), *words, name="rsa.test")
        # (Some need what no certificate gives: openssl offers nothing then.)
        refused(text)
        expect("alert number 40" in text or "no ciphers available" in text, f"{cipher}: {text}")


def groups(lab: Lab) -> Iterator[Case]:
    for version_word in ("-tls1_3", "-tls1_2"):
        for group in GROUPS:
            wanted = {"X25519": "X25519", "P-256": "prime256v1", "P-384": "secp384r1"}[group]
            # A certificate of P-256 needs that group, too: RSA's does with any.
            words = [version_word, "-groups", group]
            yield f"{group}, {version_word[1:]}", lambda words=words, wanted=wanted: key_of(
                speaks_text(lab, words, "rsa.test"), wanted)
    for group in GROUPS_REFUSED:
        yield f"no {group}", lambda group=group: refused(
            s_client(lab, lab.server("sites"), "-tls1_3", "-groups", group), "alert number 40")
    yield "another group is asked for by a second hello", lambda: key_of(
        speaks_text(lab, ["-tls1_3", "-groups", "P-521:P-384"], "rsa.test"), "secp384r1")
    yield "X25519MLKEM768", lambda: hybrid(lab)


def speaks_text(lab: Lab, words: list[str], name: str) -> str:
    return served(s_client(lab, lab.server("sites"), *words, name=name))


def key_of(text: str, wanted: str) -> None:
    told = re.search(r"(?:Server|Peer) Temp Key: (.*)", text)
    expect(told and wanted in told[1].replace("ECDH, ", ""), f"not {wanted}: {told and told[1]}")


def hybrid(lab: Lab) -> None:
    words = ["-tls1_3", "-groups", "X25519MLKEM768"]
    text = s_client(lab, lab.server("sites"), *words)
    if "group" in text and "CONNECTED" not in text:
        raise Skipped(f"{version().split(' (')[0]} does not have it")
    served(text)


def certificates(lab: Lab) -> Iterator[Case]:
    names = {"localhost": "ECDSA", "p384.test": "ECDSA", "rsa.test": "RSA-PSS",
             "ed25519.test": "Ed25519"}
    for name, kind in names.items():
        yield f"the certificate of {name}, by {kind}", lambda name=name, kind=kind: presents(
            lab, name, kind)
    yield "the issuer comes behind the certificate", lambda: chain(lab)
    yield "no name: the usual certificate", lambda: expect(
        "subject=CN = localhost" in served(s_client(lab, lab.server("sites"), name="")), "another")
    yield "an unknown name: the usual certificate", lambda: expect(
        "subject=CN = localhost" in served(
            s_client(lab, lab.server("sites"), name="unknown.test")), "another")
    yield "strict names: an unknown one gets unrecognized_name", lambda: refused(
        s_client(lab, lab.server("strict"), name="unknown.test"), "alert number 112")
    yield "strict names: none gets unrecognized_name", lambda: refused(
        s_client(lab, lab.server("strict"), name=""), "alert number 112")
    yield "strict names: the certificate's own is served", lambda: served(
        s_client(lab, lab.server("strict"), name="localhost"))


def presents(lab: Lab, name: str, kind: str) -> None:
    text = served(s_client(lab, lab.server("sites"), "-verify_hostname", name, name=name))
    expect(f"subject=CN = {name}" in text, "another name")
    expect(f"Peer signature type: {kind}".lower() in text.lower(), "another signature")


def chain(lab: Lab) -> None:
    text = served(s_client(lab, lab.server("sites"), "-showcerts"))
    subjects = re.findall(r"^ *\d+ s:(.*)$", text, re.MULTILINE)
    expect(subjects == ["CN = localhost", "CN = issuer"], f"the chain is {subjects}")


def protocols(lab: Lab) -> Iterator[Case]:
    def by_alpn(words: str) -> str:
        return s_client(lab, lab.server("sites"), "-alpn", words)
    yield "ALPN http/1.1", lambda: expect("ALPN protocol: http/1.1" in by_alpn("http/1.1"), "none")
    yield "ALPN http/1.1 behind one that is not there", lambda: expect(
        "ALPN protocol: http/1.1" in by_alpn("x/1,http/1.1"), "none")
    yield "ALPN of nothing that is there: no_application_protocol", lambda: refused(
        by_alpn("x/1,y/2"), "alert number 120")
    yield "no ALPN", lambda: expect(
        "No ALPN negotiated" in served(s_client(lab, lab.server("sites"))), "some")
    yield "a status is asked for, and there is none", lambda: expect(
        "OCSP response: no response sent" in served(
            s_client(lab, lab.server("sites"), "-status")), "some")
    yield "no compression, secure renegotiation, extended master secret", lambda: twelve(lab)
    yield "records of 512 bytes at most are not agreed on, and served", lambda: served(
        s_client(lab, lab.server("sites"), "-maxfraglen", "512"))
    yield "a hello split into small records", lambda: served(
        s_client(lab, lab.server("sites"), "-max_send_frag", "512", "-alpn", "http/1.1"))


def twelve(lab: Lab) -> None:
    text = served(s_client(lab, lab.server("sites"), "-tls1_2"))
    for told in ("Compression: NONE", "Secure Renegotiation IS supported",
                 "Extended master secret: yes"):
        expect(told in text, f"not `{told}`")


def sessions(lab: Lab) -> Iterator[Case]:
    for word in ("-tls1_2", "-tls1_3"):
        yield f"a session is resumed, {word[1:]}", lambda word=word: resumed(lab, word)
        yield f"a session is not resumed by another site, {word[1:]}", lambda word=word: foreign(
            lab, word)
    yield "a session of TLS 1.2 without a ticket begins anew", lambda: no_ticket(lab)
    yield "early data is not accepted", lambda: early(lab)
    yield "early data of a ticket that allows none is not sent", lambda: expect(
        "Max Early Data: 0" in session(lab, "-tls1_3"), "the ticket allows some")


def session(lab: Lab, word: str) -> str:
    path = lab.file("session.pem")
    served(s_client(lab, lab.server("sites"), word, "-sess_out", path))
    words = ["openssl", "sess_id", "-in", path, "-noout", "-text"]
    return subprocess.run(words, capture_output=True, text=True, timeout=10).stdout


def resumed(lab: Lab, word: str) -> None:
    server = lab.server("sites")
    session(lab, word)
    before = server.counters()
    text = s_client(lab, server, word, "-sess_in", lab.file("session.pem"))
    expect("Reused, TLSv1" in text and "The page is here." in text, f"not resumed: {text[-300:]}")
    server.moved(before, "handshakes_resumed", 1)


def foreign(lab: Lab, word: str) -> None:
    session(lab, word)
    words = [word, "-sess_in", lab.file("session.pem")]
    text = served(s_client(lab, lab.server("sites"), *words, name="p384.test"))
    expect("New, TLSv1" in text and "subject=CN = p384.test" in text, "it was resumed")


def no_ticket(lab: Lab) -> None:
    session(lab, "-tls1_2")
    words = ["-tls1_2", "-no_ticket", "-sess_in", lab.file("session.pem")]
    expect("New, TLSv1.2" in served(s_client(lab, lab.server("sites"), *words)), "resumed")


def early(lab: Lab) -> None:
    session(lab, "-tls1_3")
    (lab.files / "early").write_bytes(ASK)
    words = ["-tls1_3", "-sess_in", lab.file("session.pem"), "-early_data", lab.file("early")]
    text = s_client(lab, lab.server("sites"), *words)
    expect("Early data was accepted" not in text, "it was accepted")
    expect("Early data was not sent" in text or "Early data was rejected" in text, text[-300:])
    expect("The page is here." in text, "it was not served afterwards")


def typed(lab: Lab, words: list[str], letters: list[bytes]) -> str:
    """What is printed where letters are typed in turn: commands, or what is sent."""
    command = ["openssl", "s_client", "-connect", f"{HOST}:{lab.server('sites').port}",
               "-servername", "localhost", "-CAfile", lab.file("root.pem"), *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    said = bytearray()
    reader = threading.Thread(target=lambda: said.extend(process.stdout.read()), daemon=True)
    reader.start()
    try:
        time.sleep(0.3)
        for letter in letters:
            # (One read of what is typed is one command.)
            process.stdin.write(letter)
            process.stdin.flush()
            time.sleep(0.3 if letter == ASK else 1.1)
        process.stdin.close()
        process.wait(10)
    except BrokenPipeError:
        process.wait(10)
    finally:
        process.kill()
        process.wait()
        reader.join(5)
    return said.decode(errors="replace")


def commands(lab: Lab) -> Iterator[Case]:
    keep = ASK.replace(b"Connection: close\r\n", b"")
    yield "a client replaces its key (k)", lambda: updated(lab, [b"k\n", ASK])
    yield "a client replaces both keys (K)", lambda: updated(lab, [b"K\n", ASK])
    yield "keys are replaced between requests", lambda: updated(
        lab, [keep, b"K\n", keep, b"k\n", b"K\n", ASK], 3)
    yield "renegotiation in TLS 1.2 is refused (R)", lambda: renegotiated(lab)


def updated(lab: Lab, letters: list[bytes], pages: int = 1) -> None:
    text = typed(lab, ["-tls1_3"], letters)
    expect("KEYUPDATE" in text, "openssl sent no update")
    found = text.count("The page is here.")
    expect(found == pages, f"{found} of {pages} pages: {text[-300:]}")


def renegotiated(lab: Lab) -> None:
    text = typed(lab, ["-tls1_2"], [b"R\n", ASK])
    expect("RENEGOTIATING" in text, "openssl did not try")
    refusals = ("no renegotiation", "unexpected message", "alert number 10", "alert number 100")
    expect(any(word in text for word in refusals), f"it is not refused: {text[-300:]}")
    served(s_client(lab, lab.server("sites"), "-tls1_2"))


def clients(lab: Lab) -> Iterator[Case]:
    for word in ("-tls1_2", "-tls1_3"):
        for site, client, is_served in [
            ("required", "good", True), ("required", "", False), ("required", "foreign", False),
            ("required", "expired", False), ("required", "revoked", False),
            ("optional", "good", True), ("optional", "", True), ("optional", "foreign", False),
            ("optional", "expired", False), ("optional", "revoked", False),
        ]:
            verb = "is served" if is_served else "is refused"
            name = f"a client's certificate is {site}, {client or 'none'} {verb}, {word[1:]}"
            yield name, lambda word=word, site=site, client=client, is_served=is_served: wanting(
                lab, word, site, client, is_served)


# The alert for each certificate that is refused; TLS 1.2 has no alert for one that is missing.
ALERTS = {
    "": ("alert number 116", "alert number 40"), "foreign": ("alert number 48",),
    "expired": ("alert number 45",), "revoked": ("alert number 44",),
}


def wanting(lab: Lab, word: str, site: str, client: str, is_served: bool) -> None:
    own = ["-cert", lab.file(f"{client}.pem"), "-key", lab.file(f"{client}.key")] if client else []
    name = f"{site}.test"
    ask = ASK.replace(b"localhost", name.encode())
    text = s_client(lab, lab.server("sites"), word, *own, name=name, ask=ask)
    if is_served:
        served(text)
        return
    refused(text)
    expect(any(alert in text for alert in ALERTS[client]), f"another alert: {text[-300:]}")


def timed(lab: Lab) -> Iterator[Case]:
    for kind in ("-new", "-reuse"):
        for word in ("-tls1_2", "-tls1_3"):
            yield f"s_time {kind} {word}", lambda kind=kind, word=word: s_time(lab, kind, word)


def s_time(lab: Lab, kind: str, word: str) -> None:
    server = lab.server("sites")
    before = server.counters()
    command = ["openssl", "s_time", "-connect", f"{HOST}:{server.port}", kind, word, "-time", "1",
               "-CAfile", lab.file("root.pem"), "-www", "/index.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    found = re.search(r"(\d+) connections in", done.stdout)
    expect(done.returncode == 0 and found, f"{done.stdout[-200:]} {done.stderr[-200:]}")
    expect(int(found[1]) > 10, f"only {found[1]} connections")
    server.moved(before, "handshakes", int(found[1]))
    if kind == "-reuse" and word == "-tls1_2":
        # (With TLS 1.3 it does not wait for a ticket.)
        server.moved(before, "handshakes_resumed", int(found[1]) - 2)


def cases(lab: Lab) -> Iterator[Case]:
    yield from versions(lab)
    yield from ciphers(lab)
    yield from groups(lab)
    yield from certificates(lab)
    yield from protocols(lab)
    yield from sessions(lab)
    yield from clients(lab)
    if not lab.quick:
        yield from commands(lab)
        yield from timed(lab)
