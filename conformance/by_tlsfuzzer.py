"""tlsfuzzer: its scripts that apply to this server, a case for each of their conversations.

Needs a copy of it in `target/conformance/tlsfuzzer`, and tlslite-ng in the Python that runs this.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from outcomes import Case, Unmet
from served import HOST, Lab

NAME = "tlsfuzzer"
HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent / "target").absolute()
FOLDER = TARGET / "conformance" / "tlsfuzzer"
# Words -> the scripts that get them. -n 0 is all conversations, a number that many by chance.
ALL: dict[str, list[str]] = {
    # Those that know a suite of CBC by name only get one of GCM (tlsfuzzer_started.py).
    "--gcm -d -n 0": """
        tls13-session-resumption tls13-0rtt-garbage alpn-negotiation client-compatibility
        client-hello-max-size downgrade-protection extended-master-secret-extension fallback-scsv
        no-heartbeat invalid-server-name-extension invalid-server-name-extension-resumption
        large-number-of-extensions message-skipping renegotiation-changed-clienthello
        resumption-with-wrong-ciphers sessionID-resumption session-ticket-resumption
        sig-algs-renegotiation-resumption sslv2hello-protocol legacy-renegotiation
        ssl-death-alert""".split(),
    "--gcm -d -n 150": ["large-hello"],
    "--gcm -n 0": """
        sig-algs signature-algorithms x25519""".split(),
    "-C GCM -n 0": """
        tls13-version-negotiation aes-gcm-nonces ccs conversation cve-2004-0079 cve-2016-6309
        early-application-data fuzzed-ciphertext hello-request-by-client interleaved-CKE-with-CCS
        interleaved-application-data-and-fragmented-handshakes-in-renegotiation
        interleaved-application-data-in-renegotiation invalid-compression-methods
        invalid-content-type no-mlkem-in-old-tls point-extension record-layer-fragmentation
        renegotiation-disabled truncating-of-client-hello version-numbers
        zero-length-data""".split(),
    "-C GCM -n 2000": ["invalid-client-hello-w-record-overflow"],
    "-C GCM -n 10": ["connection-abort"],
    "-n 0": """
        tls13-ccs tls13-conversation tls13-count-tickets tls13-crfg-curves tls13-ecdhe-curves
        tls13-empty-alert tls13-finished tls13-finished-plaintext tls13-hrr tls13-invalid-ciphers
        tls13-keyshare-omitted tls13-keyupdate tls13-keyupdate-from-server tls13-legacy-version
        tls13-multiple-ccs-messages tls13-no-unknown-groups tls13-nociphers tls13-obsolete-curves
        tls13-pkcs-signature tls13-record-layer-limits tls13-record-padding tls13-rsa-signatures
        tls13-signature-algorithms tls13-symetric-ciphers tls13-unencrypted-alert
        tls13-unrecognised-groups tls13-zero-content-type tls13-zero-length-data
        tls13-certificate-compression tls13-large-number-of-extensions
        tls13-shuffled-extentions""".split(),
    "-n 10": ["tls13-connection-abort"],
}
# script -> the words behind it
SCRIPTS = {script: words.replace("GCM", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256").split()
           for words, scripts in ALL.items() for script in scripts}


def version() -> str:
    """The commit, if all that is needed is there."""
    needs = subprocess.run([sys.executable, "-c", "import tlslite"], capture_output=True)
    if needs.returncode or not (FOLDER / "tlsfuzzer" / "_apps").is_dir():
        return ""
    words = ["git", "-C", str(FOLDER), "log", "-1", "--format=%h of %cs"]
    found = subprocess.run(words, capture_output=True, text=True).stdout.strip()
    return f"tlsfuzzer {found}".strip()


def cases(lab: Lab) -> Iterator[Case]:
    """Several scripts at a time: some mostly wait."""
    port = lab.server("rsa").port
    with ThreadPoolExecutor(4) as pool:
        every = pool.map(lambda script: list(conversations(port, script)), SCRIPTS)
        for script, found in zip(SCRIPTS, every):
            for conversation, error in found:
                yield f"{script}: {conversation}", lambda error=error: told(error)


def told(error: str) -> None:
    if error:
        raise Unmet(error)


def conversations(port: int, script: str) -> Iterator[tuple[str, str]]:
    """The conversations of a script, each with what was wrong, or nothing."""
    command = [sys.executable, str(HERE / "tlsfuzzer_started.py"), str(FOLDER), f"test-{script}",
               *SCRIPTS[script], "-h", HOST, "-p", str(port)]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=240)
    name, is_over, error, count = "", True, "", 0
    for line in done.stdout.splitlines():
        begin = re.match(r'(?:(.*) \.\.\.|"(.*)" repeat \d+(?:\.\.\.)?)$', line)
        if begin:
            if not is_over:
                yield name, error or "it says nothing"
            name, is_over, error, count = begin[1] or begin[2], False, "", count + 1
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
