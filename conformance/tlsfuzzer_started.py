"""Starts one script of tlsfuzzer: FOLDER NAME WORDS….

Many of them know one suite by name, of CBC, which no server of today has. They get a suite of
GCM under that name: what they test is not the suite.

Some end with `AlertGenerator(AlertDescription.close_notify)`, whose first argument is the level. No
level is 0: a server that reads it before the connection ends says so, which they do not expect.
They get the level that they mean.
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
    mend_alerts()
    sys.argv = [name, *words]
    importlib.import_module("tlsfuzzer._apps." + name.replace("-", "_")).main()


def mend_alerts() -> None:
    generator = importlib.import_module("tlsfuzzer.messages").AlertGenerator
    begin = generator.__init__

    def begin_with_level(self, level=1, description=0):
        begin(self, level or 1, description)

    generator.__init__ = begin_with_level


if __name__ == "__main__":
    main()
