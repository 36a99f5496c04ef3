"""Twisted's own suites on its epoll reactor and on ours, in the same environment, side by side.

    python trial_of_twisted.py [SUITE...]

runs each suite in a process of its own for each reactor, and prints what differs, test by test. The
last line says whether anything does. Wants `pip install "twisted[test,tls,http2]"`: without it, the
most important modules are not imported, and pass by not being there.
"""

import argparse
import collections
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time

REACTORS = ("epoll", "gustnado")
# The first asks for reactors by name and makes many; the others use the one that is installed.
BUILT = "twisted.internet.test"
SUITES = [
    BUILT, "twisted.web.test", "twisted.test.test_internet", "twisted.test.test_tcp",
    "twisted.test.test_tcp_internals", "twisted.test.test_udp", "twisted.test.test_unix",
    "twisted.test.test_ssl", "twisted.test.test_process", "twisted.test.test_stdio",
    "twisted.test.test_threads", "twisted.test.test_threadpool", "twisted.test.test_protocols",
    "twisted.test.test_policies", "twisted.test.test_ftp", "twisted.test.test_abstract",
    "twisted.test.test_application", "twisted.test.test_defer", "twisted.test.test_task",
    "twisted.test.test_factories", "twisted.test.test_pb", "twisted.test.test_twistd",
    "twisted.protocols.test", "twisted.names.test", "twisted.mail.test.test_smtp",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="*", default=SUITES)
    parser.add_argument("--skips", action="store_true", help="also list what is skipped, and why")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        return run_here(options.only, options.suites[0])
    for needed in ("hypothesis", "hamcrest", "OpenSSL", "h2"):
        if importlib.util.find_spec(needed) is None:
            sys.exit(f"{needed} is missing: pip install 'twisted[test,tls,http2]'")
    ran = [compare(suite, options.skips) for suite in options.suites]
    tests, differences = (sum(column) for column in zip(*ran))
    print(f"{len(ran)} suites, {tests} tests on each reactor: "
          + (f"{differences} DIFFER" if differences else "none differs"))
    return 1 if differences else 0


def compare(suite, shows_skips):
    """Runs a suite on both, and returns how many tests it has, and how many of them differ."""
    epoll, ours = (run_apart(reactor, suite) for reactor in REACTORS)
    for reactor, ended in zip(REACTORS, (epoll, ours)):
        counts = collections.Counter(kind for kind, _ in ended["tests"].values())
        said = ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts))
        print(f"{suite} on {reactor}: {len(ended['tests'])} tests, {said}; {ended['took']:.0f} s")
    if shows_skips:
        list_skips(epoll["tests"])
    different = 0
    for test in sorted({*epoll["tests"], *ours["tests"]}):
        kinds = [ended["tests"].get(test, ["not run", ""]) for ended in (epoll, ours)]
        if kinds[0][0] != kinds[1][0] or kinds[0][0] == "skips" and kinds[0] != kinds[1]:
            different += 1
            print(f"  {test}: {kinds[0][0]} on epoll, {kinds[1][0]} on ours: {kinds[1][1]}")
        elif kinds[0][0] in ("failures", "errors"):
            print(f"  {test}: {kinds[0][0]} on both: {kinds[0][1]}")
    return len(epoll["tests"]), different


def list_skips(tests):
    reasons = collections.defaultdict(list)
    for test, (kind, reason) in sorted(tests.items()):
        if kind == "skips":
            reasons[reason].append(test)
    for reason, skipped in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        print(f"  skipped, {len(skipped)}: {reason}")
        for test in skipped:
            print(f"    {test}")


def run_apart(reactor, suite):
    began = time.monotonic()
    command = [sys.executable, os.path.abspath(__file__), "--only", reactor, suite]
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
        path = os.path.join(folder, "ended.json")
        if not os.path.exists(path):
            sys.exit(f"{suite} on {reactor} ended by itself:\n{ended.stdout}{ended.stderr}")
        with open(path) as file:
            tests = json.load(file)
    if not tests:
        sys.exit(f"{suite} on {reactor} has no tests: {ended.stdout}{ended.stderr}")
    return {"tests": tests, "took": time.monotonic() - began}


def run_here(reactor, suite):
    """Runs a suite in this process, and writes what became of each test to ended.json."""
    if reactor == "gustnado":
        from gustnado.twisted import GustnadoReactor as kind
    else:
        from twisted.internet.epollreactor import EPollReactor as kind
    if suite.startswith(BUILT):
        from twisted.internet.test.reactormixins import ReactorBuilder

        # A test is skipped by the name of the class: what it tries, no epoll reactor can do.
        sys.modules["trial_of_twisted"] = sys.modules[__name__]
        globals()["EPollReactor"] = type("EPollReactor", (kind,), {"__module__": __name__})
        ReactorBuilder._reactors = ["trial_of_twisted.EPollReactor"]
    else:
        from twisted.internet.main import installReactor

        # (Under its own name: children of some tests install it again by that.)
        installReactor(kind())

    from twisted.trial import reporter, runner

    ended = {}

    def note(kind):
        def add(self, test, *words):
            reason = words[0] if words else ""
            text = getattr(reason, "getErrorMessage", lambda: str(reason))()
            # A test may fail and be skipped in the end: what is worst counts.
            if ended.get(test.id(), ["successes"])[0] in ("successes", kind):
                ended[test.id()] = [kind, text.strip().split("\n")[0]]

        return add

    class Notes(reporter.Reporter):
        addSuccess, addSkip = note("successes"), note("skips")
        addFailure, addError = note("failures"), note("errors")
        addExpectedFailure = note("expected failures")
        addUnexpectedSuccess = note("unexpected successes")

    trial = runner.TrialRunner(lambda *words: Notes(io.StringIO()), workingDirectory="trial",
                               stream=io.StringIO())
    result = trial.run(runner.TestLoader().loadByNames([suite], recurse=True))
    del result
    with open("ended.json", "w") as file:
        json.dump(ended, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
