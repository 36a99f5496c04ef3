"""Flags of uvicorn, gunicorn, granian and hypercorn, and their counterparts here.

One table: the command line acts by it, and the tables of docs/python/asgi.md and wsgi.md are made
of it (`python -m gustnado._peers uvicorn`). A name in this table is never guessed at.
"""

from __future__ import annotations

import re
import sys
import typing

from ._options import YES, SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Setting = tuple[str, str, bool]

SAME, OURS, NOTHING, REFUSED = "same", "ours", "nothing", "refused"


def _no_settings(_flag: str, _value: str) -> Sequence[Setting]:
    return ()


class Row(typing.NamedTuple):
    """- `words`: the flags, with blanks between them.
    - `here`: what they are here, in Markdown.
    - `sets`: of a flag and its value, the settings: name, text, and whether any other source
    takes precedence."""

    words: str
    kind: str
    here: str
    takes: bool = True
    sets: Callable[[str, str], Sequence[Setting]] = _no_settings
    program: str = ""

    def refusal(self, flag: str) -> str:
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", self.here).replace("`", "")
        return f"{flag} ({self.program}): {plain}"


def same(words: str, here: str = "the same") -> Row:
    return Row(words, SAME, here)


def ours(words: str, name: str, here: str, change: Callable[[str], str] = str) -> Row:
    """It is another name of our flag, which takes a value, too."""
    return Row(words, OURS, here, True, lambda flag, value: [(name, change(value), False)])


def switch(words: str, here: str, *sets: Setting) -> Row:
    """It takes no value. `sets`: name, text, and whether that is weak."""
    return Row(words, OURS, here, False, lambda flag, value: sets)


def choice(
    words: str, here: str, values: dict[str, list[Setting]], otherwise: str
) -> Row:
    """- `values`: what each one sets.
    - `otherwise`: why no other is there."""

    def sets(flag: str, value: str) -> list[Setting]:
        found = [one for name, one in values.items() if name.lower() == value.lower()]
        if not found:
            known = ", ".join(values)
            raise SettingError(f'{flag}: expected one of {known}, found "{value}"; {otherwise}')
        return found[0]

    return Row(words, OURS, here, True, sets)


def nothing(words: str, here: str, takes: bool = False) -> Row:
    """It is accepted without effect: this is always so."""
    return Row(words, NOTHING, here, takes)


def refused(words: str, here: str) -> Row:
    return Row(words, REFUSED, here)


def client_auth(word: str) -> Row:
    """It is a number or a name of Python's module `ssl`."""
    values: dict[str, list[Setting]] = {
        name: [("tls-client-auth", value, False)] for name, value in _CLIENT_AUTH.items()
    }
    return choice(word, "`--tls-client-auth none`, `optional` or `required`", values,
                  "they are those of Python's `ssl`")


_CIPHERS = "none: AES-GCM and ChaCha20-Poly1305: [tls.md](../tls.md)"
_PASSWORD = ("none: keys without a password, such as `openssl pkey -in key.pem -out plain.pem` "
             "writes; no other user than the server's should be able to read that")
_VERSION = "`--tls-version-min 1.3`; 1.2 and 1.3 are spoken"
_METRICS = ("`--metrics-path /metrics`, on the server's own port: [metrics.md](../metrics.md)")
_CERT, _KEY = "`--tls-cert FILE`: [tls.md](../tls.md)", "`--tls-key FILE`"
_CLIENT_AUTH = {"0": "none", "1": "optional", "2": "required", "CERT_NONE": "none",
                "CERT_OPTIONAL": "optional", "CERT_REQUIRED": "required"}
_HTTP2 = "`--http2`, `--h2c`, `--h2-streams`, `--h2-window-bytes` and others of HTTP/2"
_LOGGING = ("none: `--log-config FILE`, or `logging.config` in the application; the loggers are "
            "`gustnado` and `gustnado.error`")
_MANAGER = "none: that is the service manager's, as in systemd's"
_ASGI: list[Setting] = [("interface", "asgi", False)]
_WSGI: list[Setting] = [("interface", "wsgi", False)]
_WORKER_CLASSES: dict[str, list[Setting]] = {
    "sync": _WSGI, "gthread": _WSGI, "asgi": _ASGI,
    "asyncio": [("loop", "asyncio", False)], "uvloop": [("loop", "uvloop", False)],
    "uvicorn.workers.UvicornWorker": _ASGI, "uvicorn.workers.UvicornH11Worker": _ASGI,
    "uvicorn_worker.UvicornWorker": _ASGI, "uvicorn_worker.UvicornH11Worker": _ASGI,
}
_NO_CLASS = "there are no green threads and no other loops: say --threads N, or leave it out"
_NO_CONFIG = ("none: all settings are flags, variables such as `GUSTNADO_WORKERS`, or arguments of "
              "`gustnado.run`")
_GRACEFUL = "`--timeout-graceful-shutdown`, in seconds or with a unit"
_KEEP_ALIVE = "`--timeout-keep-alive`, in seconds or with a unit; 0 closes after each response"
_ACCESS_LOG = "`--access-log FILE`, or `-`: [access-log.md](../access-log.md)"
_ERROR_LOG = "`--error-log FILE`: the server's lines, and all else that goes to standard error"
_STATSD = "none; `--metrics-path /metrics` is a page for Prometheus: [metrics.md](../metrics.md)"
_MIB = "`--max-worker-rss`; a plain number is MiB, as with granian"

UVICORN = (
    same("--host --port --uds --fd",
         "the same, a Unix socket for everyone; also `--uds-permissions`, `--bind`, which may be "
         "repeated, and `LISTEN_FDS` of systemd"),
    same("--workers", "the same; or `auto`. Processes that die are replaced; HUP replaces them "
         "one by one"),
    same("--reload --reload-dir"),
    refused("--reload-include --reload-exclude --reload-delay",
            "none: Python files below `--reload-dir`, checked four times a second"),
    same("--loop", "the same: `auto`, `asyncio` or `uvloop`; see below"),
    choice("--http", "`auto`, `h11`, `httptools` and `1` are accepted: there is one parser",
           {"auto": [], "h11": [], "httptools": [], "1": []},
           "there is one parser for HTTP/1.1, and one for HTTP/2"),
    refused("--h11-max-incomplete-event-size", "`--limit-head-bytes SIZE`"),
    same("--http2", "the same, for clients that come by TLS; on by default"),
    same("--ws", "`auto`, `websockets`, `websockets-sansio` and `wsproto` are one and the same; "
         "with `none`, requests for WebSockets get 426, by HTTP/2 501"),
    ours("--ws-max-size", "ws-message-bytes-max", "`--ws-message-bytes-max SIZE`, 16 MiB"),
    refused("--ws-max-queue", "none: 32 messages or 64 KiB of them are received ahead"),
    ours("--ws-ping-interval", "ws-ping", "`--ws-ping TIME`, 30 s"),
    same("--ws-ping-timeout", "the same, 20 s"),
    ours("--ws-per-message-deflate", "ws-deflate",
         "`--ws-deflate on`, which is the default, or `off`",
         lambda value: "on" if value.lower() in YES else "off"),
    same("--lifespan", "the same: `auto`, `on` or `off`; its shutdown has `--lifespan-timeout`, "
         "30 s"),
    same("--interface",
         "`native`, `asgi` (or `asgi3`), `wsgi` or `auto`; ASGI 2 is not spoken"),
    same("--factory --app-dir --root-path"),
    same("--env-file", "the same, and it may be repeated; what is set already stays"),
    same("--log-level", "the same; `trace` is `debug`"),
    same("--log-config", "the same: `.json`, `.yaml` where PyYAML is installed, else `.ini`"),
    refused("--use-colors", "none: the log has no colours"),
    nothing("--no-use-colors", "accepted: the log has no colours"),
    same("--access-log", "the same, to standard output; `--access-log FILE` is here too: "
         "[access-log.md](../access-log.md)"),
    switch("--no-access-log", "accepted, and the default: no access log, whatever "
           "`GUSTNADO_ACCESS_LOG` says", ("access-log", "", False)),
    switch("--proxy-headers", "`--forwarded-allow-ips 127.0.0.1`, unless that is given",
           ("forwarded-allow-ips", "127.0.0.1", True)),
    switch("--no-proxy-headers", "accepted, and the default: no proxy is trusted",
           ("forwarded-allow-ips", "", False)),
    same("--forwarded-allow-ips", "the same, with networks and `unix`; no proxy is trusted by "
         "default, 127.0.0.1 neither: [proxies.md](../proxies.md)"),
    nothing("--server-header --date-header", "accepted: they are sent"),
    switch("--no-server-header", '`--server-name ""`', ("server-name", "", False)),
    refused("--no-date-header", "none: the date is always sent"),
    refused("--header", "none: the application, or a middleware, adds fields"),
    same("--limit-concurrency", "the same for requests that a handler runs for; 64 more wait for "
         "up to a second, and none with `--handler-queue 0`"),
    ours("--limit-max-requests", "max-requests", "`--max-requests`"),
    ours("--limit-max-requests-jitter", "max-requests-jitter", "`--max-requests-jitter`"),
    same("--backlog"),
    same("--timeout-keep-alive", "the same, in seconds or with a unit: `5s`; 0 closes after each "
         "response"),
    same("--timeout-graceful-shutdown",
         "the same, in seconds or with a unit: `10s`, which is the default"),
    refused("--timeout-worker-healthcheck", "`--timeout TIME`: a worker whose thread is held for "
            "longer is replaced"),
    refused("--reset-contextvars",
            "none: each request is a task, with a copy of the server's context"),
    ours("--ssl-certfile", "tls-cert", _CERT),
    ours("--ssl-keyfile", "tls-key", _KEY),
    ours("--ssl-ca-certs", "tls-client-ca", "`--tls-client-ca FILE`"),
    client_auth("--ssl-cert-reqs"),
    refused("--ssl-version", _VERSION),
    refused("--ssl-keyfile-password", _PASSWORD),
    refused("--ssl-ciphers", _CIPHERS),
    same("--version --help"),
)

GUNICORN = (
    same("-b --bind", "the same: `host:port`, `:port` for every interface, `unix:PATH`, `fd:3`; "
         "may be repeated"),
    same("-w --workers", "the same; or `auto`"),
    choice("-k --worker-class",
           "`sync`, `gthread`: WSGI, with `--threads`; `asgi`, `uvicorn.workers.UvicornWorker`: "
           "ASGI; no green threads", _WORKER_CLASSES, _NO_CLASS),
    same("--threads"),
    ours("--worker-connections", "connections-max", "`--connections-max`, for each process"),
    same("--backlog"),
    same("--max-requests --max-requests-jitter",
         "the same; the next process is ready before the old one goes"),
    same("-t --timeout", "the same, in seconds or with a unit; none by default, so that a view "
         "may take long; with threads only the engine's own counts, as with `gthread`"),
    ours("--graceful-timeout", "timeout-graceful-shutdown", _GRACEFUL),
    ours("--keep-alive", "timeout-keep-alive", _KEEP_ALIVE),
    ours("--limit-request-line", "limit-target-bytes", "`--limit-target-bytes`"),
    ours("--limit-request-fields", "limit-header-fields", "`--limit-header-fields`"),
    refused("--limit-request-field_size", "`--limit-head-bytes SIZE`, for all fields together"),
    same("--reload", "the same, and `--reload-dir`"),
    refused("--reload-engine --reload-extra-file",
            "none: Python files are checked four times a second"),
    same("--chdir"),
    refused("--pythonpath", "`--app-dir DIR`, or the variable `PYTHONPATH`"),
    refused("-c --config --print-config --check-config --paste --paste-global --paster",
            _NO_CONFIG),
    same("-e --env"),
    ours("--access-logfile", "access-log", _ACCESS_LOG),
    ours("--access-logformat", "access-log-format", "`--access-log-format`, with the same atoms"),
    ours("--error-logfile --log-file", "error-log", _ERROR_LOG),
    same("--capture-output", "the same"),
    nothing("-R --enable-stdio-inheritance", "accepted: so it is"),
    same("--log-level", "the same"),
    same("--log-config", "the same; JSON and YAML too"),
    ours("--log-config-json", "log-config", "`--log-config FILE.json`"),
    refused("--logger-class --log-syslog --log-syslog-to --log-syslog-prefix "
            "--log-syslog-facility --disable-redirect-access-to-syslog", _LOGGING),
    refused("--statsd-host --statsd-prefix --dogstatsd-tags --enable-backlog-metric", _STATSD),
    same("--preload", "the same; HUP then brings no new code"),
    nothing("--reuse-port", "accepted: the processes share the sockets that the first one opens"),
    nothing("--no-sendfile", "accepted: the engine still sends files"),
    refused("-D --daemon", f"{_MANAGER} `Type=exec`"),
    same("--pid", "the same; `-p` is `--port`"),
    same("-u --user", "the same, for the supervisor too, and before the application is "
         "imported"),
    refused("-g --group --initgroups", "`--user NAME:GROUP`, which always sets the user's groups"),
    same("-m --umask", "the same, for Unix sockets too unless `--uds-permissions` is given"),
    same("-n --name", "the same, of which 15 bytes count"),
    nothing("--worker-tmp-dir", "accepted: workers write no files to show that they live", True),
    refused("--spew", "none"),
    same("--root-path", "the same; it is taken off `PATH_INFO` by whole segments, if the proxy "
         "has not done so"),
    same("--forwarded-allow-ips", "the same, with networks and `unix`; no proxy is trusted by "
         "default, 127.0.0.1 neither: [proxies.md](../proxies.md). `REMOTE_ADDR` is the client's "
         "then, too"),
    refused("--forwarder-headers --header-map",
            "none: fields with `_` in their names never reach `environ`"),
    same("--proxy-protocol --proxy-allow-from", "the same, for versions 1 and 2, and both must be "
         "set; refuses connections without the header"),
    refused("--permit-obsolete-folding --strip-header-spaces --permit-unconventional-http-method "
            "--permit-unconventional-http-version --casefold-http-method --http-parser",
            "none: what is against the RFC is refused"),
    refused("--protocol --uwsgi-allow-from", "none: HTTP only"),
    refused("--http-protocols --http2-cleartext --http2-max-concurrent-streams "
            "--http2-initial-window-size --http2-max-frame-size --http2-max-header-list-size",
            _HTTP2),
    ours("--certfile", "tls-cert", _CERT),
    ours("--keyfile", "tls-key", _KEY),
    ours("--ca-certs", "tls-client-ca", "`--tls-client-ca FILE`"),
    client_auth("--cert-reqs"),
    refused("--ssl-version", _VERSION),
    refused("--ciphers", _CIPHERS),
    nothing("--suppress-ragged-eofs --do-handshake-on-connect", "accepted: so it is"),
    ours("--asgi-loop", "loop", "`--loop`: [asgi.md](asgi.md)"),
    ours("--asgi-lifespan", "lifespan", "`--lifespan`: [asgi.md](asgi.md)"),
    refused("--asgi-disconnect-grace-period", "none: the application hears at once of a client "
            "that has gone"),
    ours("--websocket-max-message-size", "ws-message-bytes-max",
         "`--ws-message-bytes-max SIZE`, 16 MiB"),
    refused("--dirty-app --dirty-workers --dirty-timeout --dirty-threads "
            "--dirty-graceful-timeout", "none"),
    refused("--control-socket --control-socket-mode", "none: signals"),
    nothing("--no-control-socket", "accepted: there is none"),
    same("-h --help -v --version"),
)

GRANIAN = (
    same("--host --port --uds --uds-permissions"),
    same("--interface", "`native`, `asgi`, `wsgi` or `auto`; RSGI is granian's own"),
    choice("--http", "`auto` is accepted, `1` is `--http2=false`, `2` is `--http1=false --h2c`",
           {"auto": [], "1": [("http2", "false", False)],
            "2": [("http1", "false", False), ("h2c", "true", False)]}, ""),
    # (A switch there; one command line cannot treat it as both.)
    same("--ws", "`--ws auto`, which is the default: it takes a value"),
    switch("--no-ws", "`--ws none`", ("ws", "none", False)),
    same("--workers", "the same; or `auto`"),
    refused("--blocking-threads", "`--threads N`, for WSGI"),
    refused("--blocking-threads-idle-timeout", "none: threads stay"),
    refused("--runtime-threads --runtime-blocking-threads --runtime-mode",
            "none: the engine has one thread in each process; `--workers N`"),
    same("--loop", "`auto`, `asyncio` or `uvloop`"),
    refused("--task-impl", "none: each request is a task of asyncio"),
    same("--backlog"),
    refused("--backpressure", "`--backlog-of-threads N` for WSGI, `--connections-max N`"),
    refused("--http1-buffer-size", "`--limit-head-bytes SIZE`"),
    ours("--http1-header-read-timeout", "header-timeout", "`--header-timeout`, in milliseconds",
         lambda value: f"{value}ms" if value.isdigit() else value),
    nothing("--http1-keep-alive", "accepted: so it is"),
    switch("--no-http1-keep-alive", "`--timeout-keep-alive 0`", ("timeout-keep-alive", "0", False)),
    refused("--http1-pipeline-flush --no-http1-pipeline-flush", "none: responses that are ready "
            "together leave together"),
    refused("--http2-adaptive-window --no-http2-adaptive-window "
            "--http2-initial-connection-window-size --http2-initial-stream-window-size "
            "--http2-keep-alive-interval --http2-keep-alive-timeout "
            "--http2-max-concurrent-streams --http2-max-frame-size --http2-max-headers-size "
            "--http2-max-send-buffer-size", _HTTP2),
    nothing("--log", "accepted: so it is"),
    switch("--no-log", "`--log-level critical --quiet`", ("log-level", "critical", False),
           ("quiet", "true", False)),
    same("--log-level", "the same; `notset` is `debug`"),
    same("--log-config", "the same, and YAML and `.ini`"),
    same("--access-log", "the same, to standard output; also `--access-log FILE`"),
    switch("--no-access-log", "accepted, and the default", ("access-log", "", False)),
    refused("--access-log-fmt", "`--access-log-format TEXT`, with the atoms of gunicorn: "
            "[access-log.md](../access-log.md)"),
    ours("--ssl-certificate", "tls-cert", _CERT),
    ours("--ssl-keyfile", "tls-key", _KEY),
    ours("--ssl-ca", "tls-client-ca", "`--tls-client-ca FILE`"),
    ours("--ssl-crl", "tls-client-crl", "`--tls-client-crl FILE`"),
    choice("--ssl-protocol-min", "`--tls-version-min 1.2` or `1.3`",
           {"tls1.2": [("tls-version-min", "1.2", False)],
            "tls1.3": [("tls-version-min", "1.3", False)]}, "no other is spoken"),
    switch("--ssl-client-verify", "`--tls-client-auth required`",
           ("tls-client-auth", "required", False)),
    switch("--no-ssl-client-verify", "`--tls-client-auth none`, the default",
           ("tls-client-auth", "none", False)),
    refused("--ssl-keyfile-password", _PASSWORD),
    ours("--url-path-prefix", "root-path", "`--root-path`"),
    nothing("--respawn-failed-workers", "accepted: so it is"),
    refused("--no-respawn-failed-workers", "none: workers that die are always replaced"),
    refused("--respawn-interval", "none: those that die again and again are started less and less "
            "often"),
    refused("--rss-sample-interval --rss-samples", "none: memory is checked once a second"),
    ours("--workers-lifetime", "max-lifetime", "`--max-lifetime`"),
    ours("--workers-max-rss", "max-worker-rss", _MIB,
         lambda value: f"{value}m" if value.isdigit() else value),
    ours("--workers-kill-timeout", "timeout-graceful-shutdown", "`--timeout-graceful-shutdown`"),
    same("--factory"),
    switch("--no-factory", "accepted, and the default", ("factory", "false", False)),
    ours("--working-dir", "chdir", "`--chdir`"),
    ours("--env-files", "env-file", "`--env-file`"),
    ours("--static-path-mount", "static", "`--static /static=DIR`",
         lambda value: f"/static={value}"),
    refused("--static-path-route", "`--static /path=DIR`, in place of both"),
    refused("--static-path-dir-to-file", "none: `index.html` is a folder's own page"),
    refused("--static-path-expires", "`--cache-control on`, which says it by the kind of file"),
    refused("--metrics --metrics-scrape-interval --metrics-address --metrics-port", _METRICS),
    nothing("--no-metrics", "accepted, and the default"),
    same("--reload"),
    switch("--no-reload", "accepted, and the default", ("reload", "false", False)),
    ours("--reload-paths", "reload-dir", "`--reload-dir`"),
    refused("--reload-ignore-dirs --reload-ignore-patterns --reload-ignore-paths --reload-tick",
            "none: Python files below `--reload-dir`, checked four times a second"),
    nothing("--reload-ignore-worker-failure",
            "accepted: code that is broken waits for the next change"),
    refused("--no-reload-ignore-worker-failure", "none: broken code waits for the next change"),
    ours("--process-name", "name", "`--name`"),
    ours("--pid-file", "pid", "`--pid`"),
    same("--version --help"),
)

HYPERCORN = (
    same("-b --bind", "the same: `host:port`, `[::1]:80`, `unix:PATH`, `fd://3`; may be repeated"),
    refused("--insecure-bind", "`--bind http://HOST:PORT`, next to `--bind https://HOST:PORT`"),
    refused("--quic-bind", "none: HTTP/3 is not spoken; a proxy may use it with clients"),
    ours("--certfile", "tls-cert", _CERT),
    ours("--keyfile", "tls-key", _KEY),
    refused("--keyfile-password", _PASSWORD),
    ours("--ca-certs", "tls-client-ca", "`--tls-client-ca FILE`"),
    client_auth("--verify-mode --cert-reqs"),
    refused("--ciphers", _CIPHERS),
    same("-w --workers", "the same; or `auto`"),
    choice("-k --worker-class", "`asyncio` and `uvloop`: `--loop`; there is no trio",
           _WORKER_CLASSES, _NO_CLASS),
    ours("--access-logfile", "access-log", _ACCESS_LOG),
    ours("--access-logformat", "access-log-format", "`--access-log-format`, with the same atoms"),
    same("--access-log --error-log"),
    ours("--error-logfile --log-file", "error-log", _ERROR_LOG),
    same("--log-level"),
    same("--log-config", "the same; JSON and YAML too"),
    same("--backlog --root-path"),
    same("--reload", "the same, and `--reload-dir`"),
    ours("--graceful-timeout", "timeout-graceful-shutdown", _GRACEFUL),
    ours("--keep-alive", "timeout-keep-alive", _KEEP_ALIVE),
    refused("--read-timeout", "`--header-timeout TIME` and `--body-timeout TIME`"),
    same("--max-requests --max-requests-jitter"),
    refused("-c --config", _NO_CONFIG),
    refused("--debug", "none: `--log-level debug`, and what the application calls its debug mode"),
    refused("-D --daemon", f"{_MANAGER} `Type=exec`"),
    refused("-g --group", "`--user NAME:GROUP`; that of Unix sockets is `--uds-owner USER:GROUP`"),
    same("-u --user", "the user that root changes to; that of Unix sockets is `--uds-owner`"),
    same("-m --umask", "the same, for Unix sockets too unless `--uds-permissions` is given"),
    same("--pid", "the same; `-p` is `--port`"),
    same("--server-name", "the field `Server`; hosts are the application's to check"),
    refused("--statsd-host --statsd-prefix", _STATSD),
    ours("--websocket-ping-interval", "ws-ping", "`--ws-ping TIME`, 30 s"),
    same("-h --help --version"),
)

PROGRAMS = {"uvicorn": UVICORN, "gunicorn": GUNICORN, "granian": GRANIAN, "hypercorn": HYPERCORN}


def _by_word() -> dict[str, Row]:
    """Each flag's row; where several programs have one, the first that has it counts."""
    found: dict[str, Row] = {}
    for program, rows in PROGRAMS.items():
        for row in rows:
            for word in row.words.split() if row.kind != SAME else ():
                found.setdefault(word, row._replace(program=program))
    return found


BY_WORD = _by_word()


def table(program: str) -> str:
    """Returns a program's flags in Markdown."""
    lines = [f"| {program} | here |", "| --- | --- |"]
    for row in PROGRAMS[program]:
        words = ", ".join(f"`{word}`" for word in row.words.split())
        lines.append(f"| {words} | {row.here} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(sys.argv[1]), end="")
