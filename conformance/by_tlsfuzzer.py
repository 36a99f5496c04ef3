"""tlsfuzzer: its scripts that apply to this server, a case for each of their conversations.

Needs a copy of it in `target/conformance/tlsfuzzer`, and tlslite-ng in the Python that runs this.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from outcomes import Case, Unmet
from served import HOST, Lab

NAME = "tlsfuzzer"
HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent / "target").absolute()
FOLDER = TARGET / "conformance" / "tlsfuzzer"
GCM = ["-C", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
# Scripts that know a suite of CBC by name alone get one of GCM (tlsfuzzer_started.py).
OLD = ["--gcm", "-d"]
# The words behind each script; -n 0 is all of its conversations, a number that many by chance.
SCRIPTS: dict[str, list[str]] = {
    # TLS 1.3
    **dict.fromkeys("""
        ccs connection-abort conversation count-tickets crfg-curves ecdhe-curves empty-alert
        finished finished-plaintext hrr invalid-ciphers keyshare-omitted keyupdate
        keyupdate-from-server legacy-version multiple-ccs-messages no-unknown-groups nociphers
        obsolete-curves pkcs-signature record-layer-limits record-padding rsa-signatures
        session-resumption signature-algorithms symetric-ciphers unencrypted-alert
        unrecognised-groups version-negotiation zero-content-type zero-length-data 0rtt-garbage
        certificate-compression dhe-shared-secret-padding serverhello-random
        large-number-of-extensions shuffled-extentions
        """.split(), []),
}
SCRIPTS = {f"test-tls13-{name}": ["-n", "0"] for name in SCRIPTS}
SCRIPTS["test-tls13-version-negotiation"] += GCM
for _name in "session-resumption 0rtt-garbage".split():
    SCRIPTS[f"test-tls13-{_name}"] = [*OLD, "-n", "0"]
for _name in """aes-gcm-nonces alpn-negotiation client-compatibility client-hello-max-size
        downgrade-protection extended-master-secret-extension fallback-scsv heartbeat no-heartbeat
        invalid-server-name-extension invalid-server-name-extension-resumption large-hello
        large-number-of-extensions message-skipping renegotiation-changed-clienthello
        resumption-with-wrong-ciphers sessionID-resumption session-ticket-resumption
        sig-algs-renegotiation-resumption sslv2hello-protocol legacy-renegotiation
        ssl-death-alert export-ciphers-rejected x25519""".split():
    SCRIPTS[f"test-{_name}"] = [*OLD, "-n", "0"]
for _name in """ccs connection-abort conversation cve-2004-0079 cve-2016-6309
        early-application-data fuzzed-ciphertext hello-request-by-client interleaved-CKE-with-CCS
        interleaved-application-data-and-fragmented-handshakes-in-renegotiation
        interleaved-application-data-in-renegotiation invalid-client-hello-w-record-overflow
        invalid-compression-methods invalid-content-type no-mlkem-in-old-tls point-extension
        record-layer-fragmentation renegotiation-disabled truncating-of-client-hello
        version-numbers zero-length-data""".split():
    SCRIPTS[f"test-{_name}"] = [*GCM, "-n", "0"]
for _name in "sig-algs signature-algorithms".split():
    SCRIPTS[f"test-{_name}"] = ["--gcm", "-n", "0"]
for _name in """bleichenbacher-workaround clienthello-md5 export-ciphers-rejected extensions
        invalid-cipher-suites invalid-client-hello invalid-session-id invalid-version
        TLSv1_2-rejected-without-TLSv1_2""".split():
    SCRIPTS.setdefault(f"test-{_name}", ["--gcm", "-n", "0"])


def version() -> str:
    """The commit, if all that is needed is there."""
    needs = subprocess.run([sys.executable, "-c", "import tlslite"], capture_output=True)
    if needs.returncode or not (FOLDER / "tlsfuzzer" / "_apps").is_dir():
        return ""
    words = ["git", "-C", str(FOLDER), "log", "-1", "--format=%h of %cs"]
    found = subprocess.run(words, capture_output=True, text=True).stdout.strip()
    return f"tlsfuzzer {found}".strip()


def cases(lab: Lab) -> Iterator[Case]:
    for script, words in SCRIPTS.items():
        for conversation, error in conversations(lab, script, words):
            yield f"{script}: {conversation}", lambda error=error: told(error)


def told(error: str) -> None:
    if error:
        raise Unmet(error)


def conversations(lab: Lab, script: str, words: list[str]) -> Iterator[tuple[str, str]]:
    """The conversations of a script, each with what was wrong, or nothing."""
    command = [sys.executable, str(HERE / "tlsfuzzer_started.py"), str(FOLDER), script, *words,
               "-h", HOST, "-p", str(lab.server("rsa").port)]
    # (`--gcm` comes first.)
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=240)
    name, is_over, error, count = "", True, "", 0
    for line in done.stdout.splitlines():
        if line.endswith(" ..."):
            if not is_over:
                yield name, error or "it says nothing"
            name, is_over, error, count = line[:-4], False, "", count + 1
        elif line.startswith("OK") and not is_over:
            yield name, ""
            is_over = True
        elif re.match(r"[\w.]*(Error|Exception)\b:?", line) and not line.startswith("Error "):
            error = line
        elif line.startswith("Test end") or line == "=" * 20:
            if not is_over:
                yield name, error or "it says nothing"
            is_over = True
    if count == 0 or "TOTAL:" not in done.stdout:
        yield "the script ends", f"it does not: {done.stderr[-300:]}"
