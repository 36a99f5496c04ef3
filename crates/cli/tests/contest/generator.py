"""A small load generator: it sends requests on one connection after the other for a given time,
and prints what `gustnado bench --json` prints."""

import json
import sys
import time
import urllib.request

url, *words = sys.argv[1:]
duration_s = float(words[words.index("-d") + 1].removesuffix("ms")) / 1000
connections = int(words[words.index("-c") + 1])
most = int(words[words.index("-n") + 1]) if "-n" in words else sys.maxsize

started = time.time()
times, failures, received = [], 0, 0
while time.time() < started + duration_s and len(times) + failures < most:
    begun = time.perf_counter()
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            received += len(answer.read())
        times.append((time.perf_counter() - begun) * 1e6)
    except OSError:
        failures += 1
        time.sleep(0.01)
took_s = time.time() - started
times.sort()


def percentile(share):
    return times[min(len(times) - 1, int(len(times) * share / 100))] if times else 0.0


shares = ["50", "66", "75", "80", "90", "95", "98", "99", "99.9", "99.99", "100"]
kinds = ["refused", "unconnected", "no_port", "reset", "timed_out", "short", "status", "length"]
errors = dict.fromkeys([*kinds, "body", "unreadable"], 0) | {"reset": failures}
latency = {
    "count": len(times),
    "min": percentile(0),
    "mean": sum(times) / max(1, len(times)),
    "sd": 0.0,
    "max": percentile(100),
    "percentiles": {share: percentile(float(share)) for share in shares},
}
model = {
    "name": "closed",
    "sentence": "one connection after the other",
    "connections": connections,
    "pipeline": 1,
    "keep_alive": False,
    "threads": 1,
    "io": "epoll",
}
print(json.dumps({
    "format": 1,
    "tool": "generator.py",
    "urls": [url],
    "model": model,
    "started_unix_s": started,
    "duration_s": took_s,
    "requests": len(times),
    "sent": len(times) + failures,
    "requests_per_s": len(times) / took_s,
    "errors": errors,
    "statuses": {"200": len(times)},
    "bytes_received": received,
    "bytes_sent": 0,
    "connections_opened": len(times),
    "latency_us": latency,
    "histogram": "",
    "generator": {
        "cpu_s": time.process_time(),
        "cpu_user_s": 0.0,
        "cpu_system_s": 0.0,
        "cpu_share": 0.0,
        "busiest_thread_share": 0.0,
        "bottleneck": False,
        "verdict": "",
    },
    "kernel": {
        "retransmits": 0,
        "listen_overflows": 0,
        "listen_drops": 0,
        "syn_cookies": 0,
        "resets": 0,
    },
    "warnings": [],
    "series": [],
}))
