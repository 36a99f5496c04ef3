"""Certificates by ACME, from pebble: the test authority of Let's Encrypt.

    python3 conformance/acme.py --server target/release/gustnado --tools target/acme/bin

`--tools` is a folder with `pebble` and `pebble-challtestsrv`; `make conformance-acme` builds both.
Pebble refuses some nonces and forgets some authorizations all the time, as an authority may.
Everything is on loopback. Ends with a line `N passed, N failed`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

PATIENCE_S = 60
# Pebble's settings, but for what an authority may want of an account.
PEBBLE = {
    "listenAddress": "127.0.0.1:14000",
    "managementListenAddress": "127.0.0.1:15000",
    "httpPort": 5002,
    "tlsPort": 5001,
    "ocspResponderURL": "",
    "keyAlgorithm": "ecdsa",
    "domainBlocklist": ["forbidden.test"],
    "retryAfter": {"authz": 1, "order": 1},
    "profiles": {
        "default": {"description": "usual", "validityPeriod": 7776000},
        "tlsserver": {"description": "for servers", "validityPeriod": 3888000},
        "shortlived": {"description": "six days", "validityPeriod": 518400},
    },
}
MAC_KEY = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
MANAGEMENT = "https://127.0.0.1:15000"


class Authority:
    """Pebble with its DNS, in a folder of its own."""

    def __init__(self, tools, folder, external=False):
        self.tools, self.folder = pathlib.Path(tools), pathlib.Path(folder)
        self.processes = []
        own_certificate(self.folder)
        settings = dict(PEBBLE)
        settings["certificate"] = str(self.folder / "pebble.pem")
        settings["privateKey"] = str(self.folder / "pebble.key")
        if external:
            settings["externalAccountBindingRequired"] = True
            settings["externalAccountMACKeys"] = {"kid-1": MAC_KEY}
        (self.folder / "pebble.json").write_text(json.dumps({"pebble": settings}))

    def start(self):
        """Starts both, and waits for the directory."""
        dns = ["-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dnsserver", "127.0.0.1:8053"]
        dns += ["-management", "127.0.0.1:8055", "-doh", ""]
        dns += ["-http01", "", "-https01", "", "-tlsalpn01", ""]
        self._run("pebble-challtestsrv", *dns)
        self._run(
            "pebble", "-config", str(self.folder / "pebble.json"), "-dnsserver", "127.0.0.1:8053"
        )
        wait_until("the authority answers", lambda: is_open(14000) and is_open(8055))
        return self

    def _run(self, program, *words):
        environment = dict(os.environ, PEBBLE_VA_NOSLEEP="1")
        environment |= {"PEBBLE_WFE_NONCEREJECT": "20", "PEBBLE_AUTHZREUSE": "50"}
        log = (self.folder / f"{program}.log").open("ab")
        self.processes.append(
            subprocess.Popen(
                [str(self.tools / program), *words], stdout=log, stderr=log, env=environment
            )
        )

    def stop(self):
        """Ends both."""
        for process in self.processes:
            process.terminate()
            process.wait(PATIENCE_S)
        self.processes = []
        wait_until("its ports are free", lambda: not is_open(14000) and not is_open(8055))

    def set_txt(self, name, value):
        """Sets a record of its DNS."""
        body = json.dumps({"host": name, "value": value}).encode()
        urllib.request.urlopen("http://127.0.0.1:8055/set-txt", body, timeout=5).close()

    def log(self):
        """Returns what pebble has said."""
        return (self.folder / "pebble.log").read_text()

    def root(self):
        """Returns the certificate that it signs with."""
        context = ssl.create_default_context(cafile=self.folder / "pebble.pem")
        with urllib.request.urlopen(f"{MANAGEMENT}/roots/0", context=context, timeout=5) as found:
            return found.read().decode()


class Server:
    """The server under test, on pebble's ports."""

    def __init__(self, program, authority, folder, *words, plain=5002, tls=5001):
        self.folder = pathlib.Path(folder)
        self.tls = tls
        self.settings = settings(authority, folder, *words)
        listen = f"http://127.0.0.1:{plain},https://127.0.0.1:{tls}"
        if plain is None:
            listen = f"https://127.0.0.1:{tls}"
        self.log_file = self.folder.parent / f"{self.folder.name}-{tls}.log"
        self.said = self.log_file.stat().st_size if self.log_file.exists() else 0
        self.process = subprocess.Popen(
            [program, "serve", "--listen", listen, *self.settings],
            stdout=self.log_file.open("ab"),
            stderr=subprocess.STDOUT,
        )
        wait_until("the server listens", lambda: is_open(tls))

    def log(self):
        """Returns what it has said since its start."""
        return self.log_file.read_bytes()[self.said :].decode()

    def wait_for(self, text):
        """Waits until it has said something."""
        wait_until(f"it says {text!r}", lambda: text in self.log(), lambda: self.log())

    def serial(self, name="a.test"):
        """Returns the serial number of the certificate that it presents."""
        return presented(self.tls, name)["serial"]

    def stop(self):
        """Ends it."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def settings(authority, folder, *words):
    """Returns the settings that all cases have."""
    ca = str(authority.folder / "pebble.pem")
    directory = "https://127.0.0.1:14000/dir"
    return ["--acme-directory", directory, "--acme-ca", ca, "--acme-dir", str(folder), *words]


def own_certificate(folder):
    """Makes the certificate of the authority's own server."""
    if (folder / "pebble.pem").exists():
        return
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:P-256", "-nodes", "-keyout", str(folder / "pebble.key")]
    command += ["-out", str(folder / "pebble.pem"), "-subj", "/CN=pebble", "-days", "2"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run(command, check=True, capture_output=True)


def is_open(port):
    """Returns whether something listens."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def wait_until(what, is_so, more=lambda: ""):
    """Waits, for a minute at most."""
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > until:
            raise AssertionError(f"not in time: {what}\n{more()}")
        time.sleep(0.1)


def presented(port, name, ca=None):
    """Returns issuer, serial number and days of the certificate that is presented for a name.

    With `ca` the chain is checked, too.
    """
    context = ssl.create_default_context(cadata=ca) if ca else ssl._create_unverified_context()
    with (
        socket.create_connection(("127.0.0.1", port), 5) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        der = connection.getpeercert(binary_form=True)
    shown = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-issuer", "-serial", "-enddate"],
        input=der,
        capture_output=True,
        check=True,
    ).stdout.decode()
    fields = dict(line.split("=", 1) for line in shown.splitlines())
    ends = ssl.cert_time_to_seconds(fields["notAfter"])
    return {
        "issuer": fields["issuer"],
        "serial": fields["serial"].lower(),
        "days": (ends - time.time()) / 86_400,
    }


def run(program, *words):
    """Runs a subcommand. Returns its exit code and what it prints."""
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout + done.stderr


# Each case gets the program, an authority that runs, and a folder.


def http_01_for_several_names_and_an_address(program, authority, folder):
    """Until the first certificate one of the server serves; then, without a restart, the other."""
    names = "a.test,www.a.test,127.0.0.1"
    server = Server(program, authority, folder, "--acme", names, "--acme-challenge", "http-01")
    try:
        assert "Gustnado" in presented(5001, "a.test")["issuer"], "the placeholder"
        server.wait_for("was obtained")
        server.wait_for("certificates were read again")
        for name in ("a.test", "www.a.test", "127.0.0.1"):
            assert "Pebble" in presented(5001, name, authority.root())["issuer"], name
        assert not list((folder / "challenges").iterdir()), "answers are removed"
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert modes.pop("challenges") == 0o700, modes
        assert set(modes.values()) == {0o600}, modes
    finally:
        server.stop()


def tls_alpn_01_needs_no_plain_listener(program, authority, folder):
    """The answer is a handshake: the authority sends no request."""
    asked = authority.log().count("validate w/ HTTP")
    server = Server(program, authority, folder, "--acme", "a.test,127.0.0.1", plain=None)
    try:
        server.wait_for("was obtained")
        assert authority.log().count("validate w/ HTTP") == asked
    finally:
        server.stop()


def a_short_lived_profile_is_asked_for(program, authority, folder):
    """Six days, of which the certificate is used for four; the usual profile has 45."""
    words = ["--acme", "a.test", "--acme-profile", "shortlived"]
    server = Server(program, authority, folder, *words)
    try:
        server.wait_for("certificates were read again")
        assert 5 < presented(5001, "a.test")["days"] < 6.1
        state = json.loads((folder / "state.json").read_text())
        assert 3 < (state["renew_at_s"] - time.time()) / 86_400 <= 4, state
        code, text = run(program, "acme", "status", *server.settings)
        assert code == 0 and "which ends in 5 days" in text, text
    finally:
        server.stop()


def dns_persist_01_needs_the_record_that_is_printed(program, authority, folder):
    """`acme dns` prints it, and a wildcard can be proved."""
    words = ["--acme", "*.b.test,b.test", "--acme-challenge", "dns-persist-01"]
    code, text = run(program, "acme", "dns", *settings(authority, folder, *words))
    assert code == 0, text
    wildcard = next(line for line in text.splitlines() if "policy=wildcard" in line)
    name, value = wildcard.split(" IN TXT ")
    authority.set_txt(name, value.strip('"'))
    server = Server(program, authority, folder, *words)
    try:
        server.wait_for("certificates were read again")
        assert "Pebble" in presented(5001, "x.b.test", authority.root())["issuer"]
    finally:
        server.stop()


def the_authoritys_words_are_said_and_kept(program, authority, folder):
    """What it forbids is one line, in `acme status` and `check` too."""
    server = Server(program, authority, folder, "--acme", "forbidden.test")
    try:
        server.wait_for("forbidden")
        said = [line for line in server.log().splitlines() if "no certificate for" in line]
        assert len(said) == 1 and "rejectedIdentifier" in said[0], said
        for command in (["acme", "status"], ["check"]):
            code, text = run(program, *command, *server.settings)
            assert "failed:      1 times" in text and "rejectedIdentifier" in text, text
            assert code == (1 if command[0] == "acme" else 0), code
    finally:
        server.stop()


def a_restart_and_a_second_server_ask_for_nothing(program, authority, folder):
    """Two servers share the folder: one of them obtains the certificate, both present it."""
    words = ["--acme", "a.test"]
    first = Server(program, authority, folder, *words)
    second = Server(program, authority, folder, *words, plain=6002, tls=6001)
    try:
        wait_until(
            "both present the same",
            lambda: "Pebble" in presented(6001, "a.test")["issuer"],
            lambda: first.log() + second.log(),
        )
        assert presented(6001, "a.test")["serial"] == first.serial()
    finally:
        first.stop()
        second.stop()
    orders = authority.log().count("There are now")
    again = Server(program, authority, folder, *words)
    try:
        time.sleep(3)
        assert authority.log().count("There are now") == orders, "no order"
        assert "was obtained" not in again.log(), again.log()
    finally:
        again.stop()


def a_renewal_is_served_without_a_restart(program, authority, folder):
    """`acme renew` obtains one now; the running server answers the challenge and presents it."""
    server = Server(program, authority, folder, "--acme", "a.test")
    try:
        server.wait_for("certificates were read again")
        before = server.serial()
        code, text = run(program, "acme", "renew", *server.settings)
        assert code == 0 and "was obtained" in text, text
        wait_until("the new one is presented", lambda: server.serial() != before)
    finally:
        server.stop()


def other_names_are_taken_over_by_a_reload(program, authority, folder):
    """A changed configuration file and HUP: a certificate with the new name."""
    site = folder.parent / "site.toml"
    common = settings(authority, folder)
    keys = {common[at][2:]: common[at + 1] for at in range(0, len(common), 2)}

    def write(names):
        lines = [f'{key} = "{value}"' for key, value in keys.items()]
        lines.append(f"acme = {json.dumps(names)}")
        site.write_text("\n".join(lines) + "\n")

    write(["a.test"])
    server = Server(program, authority, folder, "--config", str(site))
    try:
        server.wait_for("for a.test was obtained")
        write(["a.test", "c.test"])
        server.process.send_signal(1)
        server.wait_for("for a.test, c.test was obtained")
        wait_until(
            "it is presented", lambda: "Pebble" in presented(5001, "c.test")["issuer"]
        )
    finally:
        server.stop()


def an_authority_that_comes_back_is_asked_again(program, authority, folder):
    """While it is down the server serves; it is asked again once the time has come."""
    authority.stop()
    server = Server(program, authority, folder, "--acme", "a.test")
    try:
        server.wait_for("the authority cannot be asked")
        assert "Gustnado" in presented(5001, "a.test")["issuer"]
        authority.start()
        state = json.loads((folder / "state.json").read_text())
        assert 30 < state["retry_at_s"] - time.time() <= 75, state
        state["retry_at_s"] = 0
        (folder / "state.json").write_text(json.dumps(state))
        # The folder is looked at each minute; a start looks at once.
        server.stop()
        server = Server(program, authority, folder, "--acme", "a.test")
        server.wait_for("was obtained")
    finally:
        server.stop()


def an_account_that_was_forgotten_is_made_again(program, authority, folder):
    """A test authority forgets everything with its restart."""
    server = Server(program, authority, folder, "--acme", "a.test")
    server.wait_for("was obtained")
    server.stop()
    authority.stop()
    authority.start()
    code, text = run(program, "acme", "renew", *server.settings)
    assert code == 1 and "accountDoesNotExist" in text, text
    server = Server(program, authority, folder, "--acme", "a.test")
    try:
        code, text = run(program, "acme", "renew", *server.settings)
        assert code == 0, text
    finally:
        server.stop()


def the_authoritys_advice_is_followed(program, authority, folder):
    """Renewal information (RFC 9773) is asked for a minute after the certificate."""
    server = Server(program, authority, folder, "--acme", "a.test")
    server.wait_for("was obtained")
    server.stop()
    state = json.loads((folder / "state.json").read_text())
    assert state["advised_s"] is None
    state["ask_advice_at_s"] = 0
    (folder / "state.json").write_text(json.dumps(state))
    server = Server(program, authority, folder, "--acme", "a.test")

    def advised():
        return json.loads((folder / "state.json").read_text())["advised_s"]

    try:
        wait_until("there is advice", advised)
        first, last = advised()
        state = json.loads((folder / "state.json").read_text())
        assert first <= state["renew_at_s"] <= last, state
        assert state["ask_advice_at_s"] >= time.time() + 3_000, state
    finally:
        server.stop()


def an_account_elsewhere_is_bound(program, authority, folder):
    """External Account Binding (RFC 8555 §7.3.4); without it the authority refuses."""
    authority.stop()
    Authority(authority.tools, authority.folder, external=True)
    authority.start()
    key = folder.parent / "eab.key"
    key.write_text(MAC_KEY + "\n")
    bound = ["--acme-eab-id", "kid-1", "--acme-eab-key", str(key)]
    try:
        code, text = run(
            program, "acme", "renew", *settings(authority, folder, "--acme", "a.test")
        )
        assert code == 1 and "externalAccountRequired" in text, text
        server = Server(
            program, authority, folder.with_name("bound"), "--acme", "a.test", *bound
        )
        try:
            server.wait_for("was obtained")
        finally:
            server.stop()
    finally:
        authority.stop()
        Authority(authority.tools, authority.folder)
        authority.start()


CASES = [
    http_01_for_several_names_and_an_address,
    tls_alpn_01_needs_no_plain_listener,
    a_short_lived_profile_is_asked_for,
    dns_persist_01_needs_the_record_that_is_printed,
    the_authoritys_words_are_said_and_kept,
    a_restart_and_a_second_server_ask_for_nothing,
    a_renewal_is_served_without_a_restart,
    other_names_are_taken_over_by_a_reload,
    an_authority_that_comes_back_is_asked_again,
    an_account_that_was_forgotten_is_made_again,
    the_authoritys_advice_is_followed,
    an_account_elsewhere_is_bound,
]

# Ten seconds of them, for each change.
QUICK = [
    http_01_for_several_names_and_an_address,
    tls_alpn_01_needs_no_plain_listener,
    a_renewal_is_served_without_a_restart,
]


def main():
    """Runs the cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True, help="the command")
    parser.add_argument("--tools", required=True, help="the folder with pebble")
    parser.add_argument("--quick", action="store_true", help="three cases")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    options = parser.parse_args()
    program = str(pathlib.Path(options.server).resolve())
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as top:
        authority = Authority(options.tools, top)
        authority.start()
        try:
            for case in QUICK if options.quick else CASES:
                if options.only not in case.__name__:
                    continue
                folder = pathlib.Path(top) / case.__name__ / "acme"
                folder.parent.mkdir()
                began = time.monotonic()
                try:
                    case(program, authority, folder)
                    passed += 1
                    print(f"ok      {case.__name__} ({time.monotonic() - began:.1f} s)")
                except Exception:
                    failed += 1
                    print(f"FAILED  {case.__name__}")
                    traceback.print_exc(file=sys.stdout)
        finally:
            authority.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
