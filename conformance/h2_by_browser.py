"""Chromium without a window: pages of many files, bodies, and hosts of one certificate."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import by_browser
from by_browser import version  # noqa: F401  (`version` is a part of each client.)
from h2_lab import Lab
from outcomes import Case, expect

FILES = 300
# All files of a page, by whatever a page loads files, and what each has come by.
PAGE = """<!doctype html><title>many</title>
<script>performance.setResourceTimingBufferSize(1000);</script>
<link rel=icon href=data:,><p id=told>waiting</p>
{files}<script>
addEventListener("load", () => {{
  const all = performance.getEntriesByType("resource");
  const by = [...new Set(all.map(one => one.nextHopProtocol))].join();
  document.getElementById("told").textContent = "loaded " + all.length + " by " + by + " in " +
    performance.now().toFixed(1) + " ms";
}});
</script>
"""
BODIES = """<!doctype html><link rel=icon href=data:,><p id=told>waiting</p><script>
(async () => {
  const sent = new Uint8Array(1 << 20).fill(7);
  const said = [];
  for (let n = 0; n < 5; n++)
    said.push((await (await fetch("/taken", { method: "POST", body: sent })).text()).trim());
  const came = await (await fetch("/1m.bin")).arrayBuffer();
  document.getElementById("told").textContent = said.join() + " " + came.byteLength;
})();
</script>
"""
HOSTS = """<!doctype html><link rel=icon href=data:,><p id=told>waiting</p>
<script src="https://also-open.test:{port}/told.js?also-open"></script>
<script src="https://asking.test:{port}/told.js?asking"></script>
<script>
document.getElementById("told").textContent = "loaded " + (window.seen || []).join();
</script>
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1">'
TOLD = """(window.seen ||= []).push(new URL(document.currentScript.src).search.slice(1));
"""


def cases(lab: Lab, way: str) -> Iterator[Case]:
    # (Browsers speak HTTP/2 by TLS alone.)
    if way == "TLS":
        yield f"a page of {FILES} files, all by HTTP/2", lambda: many(lab)
        yield "5 MB up and 1 MB down by a script", lambda: bodies(lab)
        yield "hosts of one certificate: 421, and then a connection of its own", (
            lambda: coalesced(lab))


def load(lab: Lab, kind: str, path: str, name: str, pair: str, *words: str) -> str:
    profile = lab.files / "chromium"
    shutil.rmtree(profile, ignore_errors=True)
    command = [*by_browser.begin(profile, "*", by_browser.key_of(lab, pair)), *words, "--dump-dom",
               f"https://{name}:{lab.port('TLS', kind)}{path}"]
    # (A limit; it ends with the page.)
    command.insert(1, "--timeout=50000")
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout


def make_page(www: Path) -> None:
    """A page of images, scripts and styles, of 100 bytes to 30 KB each."""
    lines = []
    for count in range(FILES):
        size = 100 + count * 97 % 30_000
        if count % 10 == 0:
            name, text = f"{count}.js", f"window.n{count} = 1; // {'x' * size}"
            lines.append(f'<script src="many/{name}"></script>')
        elif count % 10 == 1:
            name, text = f"{count}.css", f".n{count} {{}} /* {'x' * size} */"
            lines.append(f'<link rel=stylesheet href="many/{name}">')
        else:
            name = f"{count}.svg"
            text = f"{SVG}<!--{'x' * size}--></svg>"
            lines.append(f'<img src="many/{name}">')
        (www / "many").mkdir(exist_ok=True)
        (www / "many" / name).write_text(text)
    (www / "many.html").write_text(PAGE.format(files="\n".join(lines)))


def many(lab: Lab) -> None:
    make_page(lab.files / "www")
    before = lab.server().counters()
    text = load(lab, "http2", "/many.html", "localhost", "p256")
    expect(f"loaded {FILES} by h2" in text, f"it says {text[-300:]}")
    count = lab.server().counters()["http2_connections"] - before["http2_connections"]
    expect(count == 1, f"{count} connections")


def bodies(lab: Lab) -> None:
    (lab.files / "www" / "bodies.html").write_text(BODIES)
    text = load(lab, "http2", "/bodies.html", "localhost", "p256", "--virtual-time-budget=10000")
    expect(f"{','.join(['taken'] * 5)} {1 << 20}" in text, f"it says {text[-300:]}")


def coalesced(lab: Lab) -> None:
    port = lab.port("TLS", "sites")
    (lab.files / "www" / "hosts.html").write_text(HOSTS.format(port=port))
    (lab.files / "www" / "told.js").write_text(TOLD)
    before = lab.server("sites").counters()
    text = load(lab, "sites", "/hosts.html", "open.test", "shared")
    expect("loaded also-open,asking<" in text, f"it says {text[-300:]}")
    after = lab.server("sites").counters()
    # (The log is written once in a while.)
    deadline, of_asking = time.monotonic() + 3, []
    while len(of_asking) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        log = Path(lab.file("sites.access")).read_text().splitlines()
        of_asking = [line.split()[-1] for line in log
                     if line.startswith("asking.test") and "told.js" in line]
    expect(of_asking[-2:] == ["421", "200"], f"{of_asking}")
    # (The first was on a connection of the others. The browser may have opened more of them.)
    count = after["http2_connections"] - before["http2_connections"]
    expect(count >= 2, f"{count} connections")
