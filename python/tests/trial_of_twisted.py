"""Twisted's own suites, and those of programs that use it, on Twisted's epoll reactor and on this
one, in the same environment, side by side.

    python trial_of_twisted.py [SUITE...]

runs each suite in a process of its own for each reactor, and prints what differs, test by test. The
last line says whether anything does. Wants `pip install "twisted[test,tls,http2]"`: without it, the
most important modules are not imported, and pass by not being there. The suites of others, which
suites_of_others.py names, want needs_of_twisted.txt.
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

import twisted
from suites_of_others import OTHERS, environment_of, run_by_pytest, version_of

REACTORS = ("epoll", "gustnado")
# The first requests reactors by name and makes many; the others use the one that is installed.
BUILT = "twisted.internet.test"
SUITES = [
    BUILT, "twisted.web.test", "twisted.test.test_internet", "twisted.test.test_tcp",
    "twisted.test.test_tcp_internals", "twisted.test.test_udp", "twisted.test.test_unix",
    "twisted.test.test_ssl", "twisted.test.test_process", "twisted.test.test_stdio",
    "twisted.test.test_threads", "twisted.test.test_threadpool", "twisted.test.test_protocols",
    "twisted.test.test_policies", "twisted.test.test_ftp", "twisted.test.test_abstract",
    "twisted.test.test_application", "twisted.test.test_defer", "twisted.test.test_task",
    "twisted.test.test_factories", "twisted.spread.test", "twisted.test.test_twistd",
    "twisted.protocols.test", "twisted.names.test", "twisted.mail.test.test_smtp",
]
OWN = "Twisted's own suites"
# What a suite may take on one reactor.
SUITE_SECONDS = 900


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--others", action="store_true",
                        help="the suites of programs on Twisted, not its own")
    parser.add_argument("--report", metavar="FILE", help="also write a page of it")
    parser.add_argument("--sources", metavar="DIR", default="target/python-sources",
                        help="where sdists are kept, for suites that no wheel has")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--ended", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        return run_here(options.only, options.suites[0], options.ended)
    for needed in ("hypothesis", "hamcrest", "OpenSSL", "h2"):
        if importlib.util.find_spec(needed) is None:
            sys.exit(f"{needed} is missing: pip install 'twisted[test,tls,http2]'")
    suites = options.suites or (list(OTHERS) if options.others else SUITES)
    ran = [Suite(suite, options.sources) for suite in suites]
    tests = sum(len(suite.results[0]) for suite in ran)
    different = sum(suite.different for suite in ran)
    end = f"{len(ran)} suites, {tests} tests on each reactor: {different or 'none'} " + (
        "differ" if different > 1 else "differs")
    if options.report:
        with open(options.report, "w") as file:
            print("\n".join(page(ran, end)), file=file)
    print(end)
    return 1 if different else 0


class Suite:
    """A suite that has been run on both."""

    def __init__(self, name, sources):
        self.name, self.different, self.notes, self.results = name, 0, [], []
        for reactor in REACTORS:
            began = time.monotonic()
            self.results.append(run_apart(reactor, name, sources))
            counts = ", ".join(f"{count} {kind}" for kind, count in self.counts(-1).items())
            print(f"{name} on {reactor}: {len(self.results[-1])} tests, {counts};"
                  f" {time.monotonic() - began:.0f} s", flush=True)
        epoll, ours = self.results
        for test in sorted({*epoll, *ours}):
            self.compare(test, *(tests.get(test, ["not run", ""]) for tests in (epoll, ours)))
        for note in self.notes:
            print(f"  {note}", flush=True)

    def counts(self, index):
        return dict(sorted(collections.Counter(
            kind for kind, _ in self.results[index].values()).items()))

    def compare(self, test, epoll, ours):
        if epoll[0] != ours[0] or (epoll[0] == "skips" and epoll != ours):
            self.different += 1
            self.notes.append(f"{test}: {epoll[0]} on epoll, {ours[0]} on ours: {ours[1]}")
        elif epoll[0] in ("failures", "errors"):
            self.notes.append(f"{test}: {epoll[0]} on both: {epoll[1]}")

    def skips(self):
        """The tests that were skipped, by reason."""
        reasons = collections.defaultdict(list)
        for test, (kind, reason) in sorted(self.results[1].items()):
            if kind == "skips":
                reasons[reason].append(test)
        return sorted(reasons.items(), key=lambda pair: -len(pair[1]))


def page(ran, end):
    python = ".".join(map(str, sys.version_info[:3]))
    names = {suite.name for suite in ran}
    yield f"# {'Suites of programs on Twisted' if names <= set(OTHERS) else OWN}\n"
    with_others = [f"{suite.name} {version}" for suite in ran
                   if (version := version_of(suite.name)) is not None]
    versions = ", ".join([f"Twisted {twisted.__version__}", *with_others, f"Python {python}"])
    yield ("Written by `python/tests/trial_of_twisted.py`, which `make test-twisted` runs."
           f" {versions}.\n")
    yield f"**{end}.**\n"
    yield "| suite | on epoll | on ours |\n| --- | --- | --- |"
    for suite in ran:
        epoll, ours = (", ".join(f"{count} {kind}" for kind, count in suite.counts(index).items())
                       for index in (0, 1))
        yield f"| `{suite.name}` | {epoll} | {ours} |"
    notes = [note for suite in ran for note in suite.notes]
    if notes:
        yield "\n## What does not pass, or differs\n"
        if os.geteuid() == 0:
            yield "This was run by root, who may read every file, and whose interpreter others may"
            yield "not: what wants an unreadable file fails for that, and `test_changeUID`.\n"
        yield from (f"- `{test}`: {why}" for test, why in (note.split(": ", 1) for note in notes))
    yield "\n## What is skipped, and why"
    for suite in ran:
        skips = suite.skips()
        if skips:
            yield f"\n### {suite.name}\n\n| tests | reason | which |\n| ---: | --- | --- |"
        for reason, tests in skips:
            names = ", ".join(f"`{test.removeprefix(suite.name + '.')}`" for test in tests)
            yield f"| {len(tests)} | {reason.replace('|', '/')} | {names} |"


def run_apart(reactor, suite, sources):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ended.json")
        command = [sys.executable, os.path.abspath(__file__), suite, "--only", reactor, "--ended",
                   path]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                               timeout=SUITE_SECONDS, env=environment_of(suite, sources))
        if not os.path.exists(path):
            sys.exit(f"{suite} on {reactor} ended by itself:\n{ended.stdout}{ended.stderr}")
        with open(path) as file:
            tests = json.load(file)
    if not tests:
        sys.exit(f"{suite} on {reactor} has no tests: {ended.stdout}{ended.stderr}")
    return tests


def run_here(reactor, suite, path):
    """Runs a suite in this process, and writes what became of each test to a file."""
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

    ended = {}

    def note(name, kind, text):
        # A test may fail and be skipped in the end: what is worst counts.
        if ended.get(name, ["successes"])[0] in ("successes", kind):
            ended[name] = [kind, text.strip().split("\n")[0]]

    other = OTHERS.get(suite)
    if other is not None and other.files:
        run_by_pytest(other.files, note)
    else:
        run_by_trial(other.suite if other else suite, note)
    with open(path, "w") as file:
        json.dump(ended, file)
    return 0


def run_by_trial(suite, note):
    from twisted.trial import reporter, runner

    def noted(kind):
        def add(self, test, *words):
            reason = words[0] if words else ""
            note(test.id(), kind, getattr(reason, "getErrorMessage", lambda: str(reason))())

        return add

    class Notes(reporter.Reporter):
        addSuccess, addSkip = noted("successes"), noted("skips")
        addFailure, addError = noted("failures"), noted("errors")
        addExpectedFailure = noted("expected failures")
        addUnexpectedSuccess = noted("unexpected successes")

    trial = runner.TrialRunner(lambda *words: Notes(io.StringIO()), workingDirectory="trial",
                               stream=io.StringIO())
    result = trial.run(runner.TestLoader().loadByNames([suite], recurse=True))
    del result


if __name__ == "__main__":
    sys.exit(main())
