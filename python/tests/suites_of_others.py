"""The suites of programs that use Twisted, for trial_of_twisted.py: where they come from, and
how those are run that pytest runs."""

import importlib.metadata
import os
import pathlib
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from run import unpacked

# The part of Scrapy's that uses the reactor itself: the rest would be the same on any.
OF_SCRAPY = (
    "engine", "engine_loop", "engine_close_spider", "engine_download",
    "engine_stop_download_bytes", "engine_stop_download_headers", "crawl", "crawler",
    "core_downloader", "core_scraper", "downloader_handlers", "downloader_handler_twisted_http11",
    "downloader_handler_twisted_http2", "downloader_handler_twisted_ftp", "downloadermiddleware",
    "extension_telnet", "http2_client_protocol", "request_left", "utils_defer",
)


class Other(NamedTuple):
    """- `suite`: what trial loads; `files`: what pytest runs instead.
    - `sdist`: name and version, where the installed package has no tests."""

    suite: str = ""
    sdist: tuple = ()
    files: tuple = ()
    environment: tuple = ()


OTHERS = {
    "Klein": Other("klein"),
    "treq": Other("treq"),
    "autobahn": Other("autobahn", environment=(("USE_TWISTED", "1"),)),
    "txtorcon": Other("test", ("txtorcon", "26.6.0")),
    "Scrapy": Other(sdist=("scrapy", "2.19.0"),
                    files=tuple(f"tests/test_{name}.py" for name in OF_SCRAPY)),
}


def version_of(suite):
    """The version of a program, where its suite is not Twisted's own."""
    return importlib.metadata.version(suite) if suite in OTHERS else None


def environment_of(suite, sources):
    """What a suite's process finds in its environment, and the folder with its tests."""
    other = OTHERS.get(suite, Other())
    environment = {**os.environ, **dict(other.environment)}
    folder = unpacked(pathlib.Path(sources), *other.sdist) if other.sdist else None
    if folder is not None:
        path = [str(folder.resolve()), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path)
        environment["SUITE_FOLDER"] = str(folder.resolve())
    return environment


def run_by_pytest(files, note):
    """Runs files of tests in the suite's folder; `note` gets each: its name, what has become
    of it, and why."""
    import pytest

    kinds = {"passed": "successes", "skipped": "skips", "failed": "failures"}

    class Notes:
        def pytest_runtest_logreport(self, report):
            # What a test needs may be skipped or fail before it, and fail after it.
            if report.when == "call" or report.outcome != "passed":
                kind = "expected failures" if hasattr(report, "wasxfail") else kinds[report.outcome]
                note(report.nodeid, kind, reason_of(report))

        def pytest_collectreport(self, report):
            if report.failed:
                note(report.nodeid, "errors", reason_of(report))

    os.chdir(os.environ["SUITE_FOLDER"])
    pytest.main(["-q", "-p", "no:cacheprovider", "--reactor=default", "--timeout=60",
                 "-W", "ignore::pytest.PytestWarning", *files],
                plugins=[Notes()])


def reason_of(report):
    if report.outcome == "passed":
        return ""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr)
