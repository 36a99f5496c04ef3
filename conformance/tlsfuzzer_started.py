"""Starts one script of tlsfuzzer: FOLDER NAME WORDS….

Many of them know one suite by name, of CBC, which no server of today has. They get a suite of
GCM under that name: what they test is not the suite.
"""

import importlib
import sys


def main() -> None:
    folder, name, *words = sys.argv[1:]
    sys.path.insert(0, folder)
    suites = importlib.import_module("tlslite.constants").CipherSuite
    if words[:1] == ["--gcm"]:
        words.pop(0)
        for old in ("RSA_WITH_AES_128_CBC_SHA", "ECDHE_RSA_WITH_AES_128_CBC_SHA"):
            setattr(suites, f"TLS_{old}", suites.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)
    sys.argv = [name, *words]
    importlib.import_module("tlsfuzzer._apps." + name.replace("-", "_")).main()


if __name__ == "__main__":
    main()
