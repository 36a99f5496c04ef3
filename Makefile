# Entry points: `make check` is what CI runs; `make bench` gives the figures.

CARGO ?= cargo
PYTHON ?= python3
FUZZ_SECONDS ?= 60
HOSTILE_SECONDS ?= 600
LOOM_TARGET := target/loom
MIRI_CRATES := gustnado-http gustnado-tasks

.PHONY: run test capability-tls capability-h2 wheel package test-python test-python-peers
.PHONY: test-twisted test-twisted-releases frameworks
.PHONY: check ring fmt fmt-check clippy doc image book site deny lint-python map loom miri probe
.PHONY: bench bench-quick contest contests hosting callgrind gate c1m fuzz fuzz-all hostile
.PHONY: tls-records
.PHONY: conformance conformance-acme conformance-http2 conformance-websocket
.PHONY: conformance-chat conformance-dictionary conformance-websocket-client autobahn page-load

# Serves the built-in site on http://127.0.0.1:8080
run:
	$(CARGO) run --release -p gustnado-cli -- serve

# Every test in Rust, two programs at a time; without Python, one after the other.
test:
	@if command -v $(PYTHON) >/dev/null; then $(PYTHON) .ci/test; \
	else $(CARGO) test --workspace --all-features --no-fail-fast; fi

# The capability suites of plain HTTP over TLS, with our own layer of records and with rustls's:
# some twenty minutes. One suite: make capability-tls TLS_SUITES=http1
TLS_SUITES ?= http1 files adversary embedding tower
capability-tls:
	for records in own rustls; do \
		GUSTNADO_TEST_TRANSPORT=tls GUSTNADO_TEST_TLS_RECORDS=$$records \
		$(CARGO) test --workspace --all-features --no-fail-fast \
		$(addprefix --test ,$(TLS_SUITES)) || exit 1; done

# The same over HTTP/2 in clear: some fifteen minutes. One suite: make capability-h2 H2_SUITES=http1
H2_SUITES ?= http1 files adversary embedding tower operations
capability-h2:
	GUSTNADO_TEST_TRANSPORT=h2 $(CARGO) test -p gustnado --all-features --no-fail-fast \
	$(addprefix --test ,$(H2_SUITES))

# The Python package in an environment of its own, built as `pip install ./python` builds it. Five
# tests at a time: they mostly wait. With RERUN=1 a test that fails is run once more, and named.
PYTHON_HOME := target/python
test-python: $(PYTHON_HOME)/bin/python
	$(PYTHON_HOME)/bin/pip install --quiet "./python[test]"
	$(PYTHON_HOME)/bin/pip install --quiet --no-deps cyclone==1.3
	$(PYTHON_HOME)/bin/python -m pytest -q -n 5 $(if $(RERUN),--reruns $(RERUN) -r R) python/tests

# The package for the environments of other tests, built by the Python that `make test-python` has:
# for another one's path all of it would be compiled again.
WHEELS := target/wheels
INSTALL_WHEEL = pip install --quiet --force-reinstall --no-deps $(WHEELS)/gustnado-*.whl
wheel: $(PYTHON_HOME)/bin/python
	rm -rf $(WHEELS)
	$(PYTHON_HOME)/bin/pip wheel --quiet --no-deps --wheel-dir $(WHEELS) ./python

# What the registries get: the crates, and the Python package as source and as a wheel.
package: wheel
	$(CARGO) package --workspace --exclude gustnado-python --locked --no-verify
	$(PYTHON_HOME)/bin/pip install --quiet build twine
	$(PYTHON_HOME)/bin/python -m build --sdist --outdir target/package python
	$(PYTHON_HOME)/bin/python -m twine check --strict target/package/*.tar.gz $(WHEELS)/*.whl

# The tests that uvicorn, gunicorn and granian have for themselves; theirs are fetched, not kept
# here. (The reasons for what fares otherwise: python/tests/peers/*_differs.py.)
PEERS_HOME := target/python-peers
test-python-peers: wheel $(PEERS_HOME)/bin/python
	$(PEERS_HOME)/bin/pip install --quiet -r python/tests/peers/needs.txt
	$(PEERS_HOME)/bin/$(INSTALL_WHEEL)
	$(PEERS_HOME)/bin/python python/tests/peers/run.py $(PEERS_HOME)/sources

# Frameworks beside uvicorn and gunicorn, for a minute or two: writes docs/python/frameworks.md.
FRAMEWORKS_HOME := target/python-frameworks
frameworks: wheel $(FRAMEWORKS_HOME)/bin/python
	$(FRAMEWORKS_HOME)/bin/pip install --quiet -r python/tests/frameworks/needs.txt
	$(FRAMEWORKS_HOME)/bin/$(INSTALL_WHEEL)
	$(FRAMEWORKS_HOME)/bin/python python/tests/frameworks/table.py \
		--report docs/python/frameworks.md

# Twisted's own suites, and Klein's, treq's, autobahn's, txtorcon's and Scrapy's, on its epoll
# reactor and on ours, for some minutes: what differs is listed.
TWISTED_HOME := target/python-twisted
test-twisted: wheel $(TWISTED_HOME)/bin/python
	$(TWISTED_HOME)/bin/pip install --quiet -r python/tests/needs_of_twisted.txt
	$(TWISTED_HOME)/bin/$(INSTALL_WHEEL)
	$(TWISTED_HOME)/bin/python python/tests/trial_of_twisted.py \
		--report docs/results/twisted-suites.md
	$(TWISTED_HOME)/bin/python python/tests/trial_of_twisted.py --others \
		--sources $(TWISTED_HOME)/sources --report docs/results/twisted-programs.md

# The comparisons with Twisted on each release whose functions are known, in an environment of its
# own for each. `make test-twisted-releases TWISTED_RELEASES=24.11.0` takes one. Digests first.
TWISTED_RELEASES ?= 24.7.0 24.11.0 25.5.0 26.4.0 26.10.0
TWISTED_TESTS := test_twisted*.py test_identical*.py test_cyclone.py
test-twisted-releases: wheel
	set -e; for release in $(TWISTED_RELEASES); do \
		home=target/python-twisted-$$release; echo "Twisted $$release"; \
		test -x $$home/bin/python || $(PYTHON) -m venv $$home; \
		$$home/bin/pip install --quiet "twisted==$$release" \
			"gustnado[test] @ file://$$(ls $(CURDIR)/$(WHEELS)/gustnado-*.whl)"; \
		$$home/bin/pip install --quiet --no-deps cyclone==1.3; \
		$$home/bin/$(INSTALL_WHEEL); \
		$$home/bin/python python/tests/twisted_digests.py; \
		$$home/bin/python -m pytest -q -n 5 --reruns 1 -r R \
			$(addprefix python/tests/,$(TWISTED_TESTS)); \
	done

CONFORMANCE_HOME := target/conformance/venv
$(PYTHON_HOME)/bin/python $(PEERS_HOME)/bin/python $(FRAMEWORKS_HOME)/bin/python \
$(TWISTED_HOME)/bin/python $(CONFORMANCE_HOME)/bin/python:
	$(PYTHON) -m venv $(@D)/..

# The tidy test (crates/cli/tests/tidy.rs) is one of the tests.
check: fmt-check clippy test doc deny lint-python

fmt-check:
	$(CARGO) fmt --all --check

fmt:
	$(CARGO) fmt --all

# The second line: the command without the lab.
clippy:
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	$(CARGO) clippy -p gustnado-cli --all-targets --no-default-features -- -D warnings

# The build with ring in place of aws-lc, and its tests of TLS: a minute or two.
ring:
	$(CARGO) clippy -p gustnado-cli --no-default-features --features tls-ring -- -D warnings
	$(CARGO) test -p gustnado --no-default-features --features tls-ring --test tls

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps \
		--document-private-items

# The score by Http11Probe's cases, and the reason of each that does not pass.
probe:
	$(CARGO) test -q -p gustnado --all-features --test http1 -- probe:: --nocapture

# Builds the container image, runs its program and removes it, where docker or podman is at hand.
image:
	@builder=$$(command -v docker || command -v podman) || \
		{ echo "image: skipped; it needs docker or podman"; exit 0; }; set -e; \
	$$builder build -t gustnado-tried .; \
	$$builder run --rm gustnado-tried --version; \
	$$builder rmi gustnado-tried

# The book of docs/, in target/book, with the reports of contests that are in target/bench. Its
# builder is compiled at the first call, for some minutes.
MDBOOK_VERSION := 0.5.4
MDBOOK := target/tools/bin/mdbook
book: $(MDBOOK)
	rm -rf target/book
	$(MDBOOK) build
	$(PYTHON) book/reports.py target/book
	$(PYTHON) book/check.py target/book

$(MDBOOK):
	$(CARGO) install --locked --root target/tools --version $(MDBOOK_VERSION) \
		--no-default-features --features search mdbook

# The book with the documentation of the Rust library and of the Python package, as it is published.
site: book $(PYTHON_HOME)/bin/python
	$(CARGO) doc -p gustnado --all-features --no-deps
	rm -rf target/book/rust && cp -r target/doc target/book/rust
	$(PYTHON_HOME)/bin/pip install --quiet "./python[twisted]" "pdoc>=15,<17"
	$(PYTHON_HOME)/bin/python book/python_api.py target/book/python-api
	$(PYTHON) book/check.py target/book

# Every source file with the first line of what it says about itself.
map:
	@git ls-files 'crates/*/src/*.rs' 'python/src/*.rs' | xargs awk \
		'FNR == 1 && sub("^//! *", "") { printf "%-50s %s\n", FILENAME, $$0 }'

# Without the tool, the tidy test still checks licences and duplicates.
deny:
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check bans licenses sources; \
	else echo "deny: skipped; for it: $(CARGO) install --locked cargo-deny"; fi

# Types and style of everything in Python, by the versions that the package names: neither needs it
# to be built.
lint-python: $(PYTHON_HOME)/bin/python
	@$(PYTHON_HOME)/bin/pip install --quiet \
		$$(grep -oE '"(mypy|ruff)[^"]*"' python/pyproject.toml | tr -d '"')
	$(PYTHON_HOME)/bin/ruff check --config python/pyproject.toml \
		python bench book arena contests conformance .ci/test
	cd python && $(CURDIR)/$(PYTHON_HOME)/bin/mypy

# Every interleaving of the lock-free parts, within the bounds that
# crates/tasks/src/sync/models.rs sets. Cargo is content with no test at all, so they are counted.
loom:
	@mkdir -p $(LOOM_TARGET)
	RUSTFLAGS="--cfg loom" $(CARGO) test -p gustnado-tasks --release \
		--target-dir $(LOOM_TARGET) --lib models:: | tee $(LOOM_TARGET)/models.log
	@grep -Eq '^test result: ok\. [1-9]' $(LOOM_TARGET)/models.log || { echo "loom: failed"; exit 1; }

miri:
	@if $(CARGO) +nightly miri --version >/dev/null 2>&1; then \
		for crate in $(MIRI_CRATES); do $(CARGO) +nightly miri test -p $$crate --lib || exit 1; done; \
	else echo "miri: skipped; it needs a nightly toolchain with the component miri"; fi

# Each of these fails where a figure to reach is missed; bench-quick judges nothing.
GUSTNADO := $(or $(CARGO_TARGET_DIR),target)/release/gustnado
CONTEST_OUTPUT := $(or $(CARGO_TARGET_DIR),target)/bench
bench:
	$(CARGO) build --release -p gustnado-cli
	$(GUSTNADO) contest contests/foundation.toml --output $(CONTEST_OUTPUT)/contest-foundation
	$(PYTHON) bench/run.py

bench-quick:
	$(CARGO) build --release -p gustnado-cli
	$(GUSTNADO) contest contests/foundation.toml --quick --output $(CONTEST_OUTPUT)/quick
	$(PYTHON) bench/run.py --quick

# Any contest of contests/ by its name: make contest NAME=c10k
contest:
	$(CARGO) build --release -p gustnado-cli
	$(GUSTNADO) contest contests/$(NAME).toml --output $(CONTEST_OUTPUT)/contest-$(NAME)

# Folders of 10,000 entries and of a million files, and the hash of a large one: some ten minutes,
# and 2 GB below target/bench. The rest of what hosting costs: make contest NAME=hosting
hosting:
	$(CARGO) build --release -p gustnado-cli
	$(PYTHON) bench/hosting.py

callgrind:
	$(PYTHON) bench/run.py instructions --gate

# Instructions and system calls per request, counted: fails where a limit is passed.
gate:
	$(PYTHON) bench/run.py --gate

# The contests, each with the page of docs/results that has its table; some five hours.
# All are held before the first table changes the tree, and published also where a figure was not
# reached. CONTESTS_FLAGS=--publish: docs/contest.md. CONTESTS="axum:axum uploads:uploads" holds
# these two.
CONTESTS := c10k:contests foundation:foundation large-files:large-files workloads:contests \
	qurricane:contests niosted:contests asynchttpd:contests tinyhttpserver:contests axum:axum \
	arena:arena arena-files:arena uploads:uploads uploads-python:uploads python:python \
	tls:tls arena-tls:arena http2:http2 arena-h2:arena websocket:websocket hosting:hosting
contests:
	$(CARGO) build --release -p gustnado-cli
	failed=0; for pair in $(CONTESTS); do name=$${pair%%:*}; \
		$(GUSTNADO) contest contests/$$name.toml \
		--output $(CONTEST_OUTPUT)/contest-$$name || failed=1; done; \
	for pair in $(CONTESTS); do name=$${pair%%:*}; \
		$(GUSTNADO) contest --report $(CONTEST_OUTPUT)/contest-$$name \
		--markdown=docs/results/$${pair##*:}.md $(CONTESTS_FLAGS) || failed=1; done; exit $$failed

# Our own layer of TLS records against rustls's, over so many records: some minutes.
TLS_RECORDS ?= 100000000
tls-records:
	GUSTNADO_TLS_RECORDS=$(TLS_RECORDS) $(CARGO) test --release -p gustnado-tls --features tls-aws-lc \
		both_layers_agree_on_any_records -- --nocapture

# HTTPS against other people's clients, some ten minutes: writes docs/results/conformance-tls.md.
# Clients that are not installed are skipped; conformance/README.md says what each needs.
conformance: $(CONFORMANCE_HOME)/bin/python
	$(CARGO) build --release -p gustnado-cli
	$(CONFORMANCE_HOME)/bin/pip install --quiet --pre tlslite-ng==0.9.0b2 ecdsa
	$(CONFORMANCE_HOME)/bin/python conformance/tls.py --server $(GUSTNADO) \
		--report docs/results/conformance-tls.md

# Autobahn 0.8.2 runs on Python 2.7 alone; its last virtualenv is 20.15.1.
PYTHON2 ?= python2.7
AUTOBAHN := target/conformance/autobahn
autobahn:
	if command -v $(PYTHON2) && [ ! -e $(AUTOBAHN)/bin/wstest ]; then \
		$(PYTHON2) -m pip install --quiet --target $(AUTOBAHN)-virtualenv virtualenv==20.15.1 && \
		PYTHONPATH=$(AUTOBAHN)-virtualenv $(PYTHON2) -m virtualenv --quiet $(AUTOBAHN) && \
		$(AUTOBAHN)/bin/pip install --quiet autobahntestsuite==0.8.2; fi

# The WebSocket client against Autobahn's fuzzing server, some minutes: writes
# docs/results/conformance-websocket-client.md.
conformance-websocket-client: autobahn
	$(CARGO) build --package gustnado --example autobahn
	$(PYTHON) conformance/websocket_client.py --program target/debug/examples/autobahn \
		--wstest $(AUTOBAHN)/bin/wstest --report docs/results/conformance-websocket-client.md

# The chats of the examples in Chromium, in Rust and in Python: a minute.
conformance-chat: $(CONFORMANCE_HOME)/bin/python $(PYTHON_HOME)/bin/python
	$(CARGO) build --release -p gustnado --features tls --example chat_room
	$(CONFORMANCE_HOME)/bin/pip install --quiet playwright
	$(CONFORMANCE_HOME)/bin/python conformance/chat_by_browser.py \
		--chat target/release/examples/chat_room --python $(PYTHON_HOME)/bin/python

# Compression dictionaries in Chromium: half a minute.
conformance-dictionary: $(CONFORMANCE_HOME)/bin/python
	$(CARGO) build --release -p gustnado-cli
	$(CONFORMANCE_HOME)/bin/pip install --quiet playwright
	$(CONFORMANCE_HOME)/bin/python conformance/dictionary_by_browser.py --server $(GUSTNADO)

# HTTP/2 against other people's clients, some minutes: writes docs/results/conformance-http2.md. The
# program with the gRPC service and axum's examples is a workspace of its own.
H2SPEC := github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible
GRPC_GO := google.golang.org/grpc/interop/client@v1.76.0
TOOLS := $(CURDIR)/target/conformance/bin
conformance-http2: $(CONFORMANCE_HOME)/bin/python
	$(CARGO) build --release -p gustnado-cli
	$(CARGO) build --manifest-path conformance/program/Cargo.toml \
		--target-dir target/conformance/program
	mkdir -p $(TOOLS)
	cp target/conformance/program/debug/gustnado-conformance $(TOOLS)
	GOBIN=$(TOOLS) go install $(H2SPEC)
	GOBIN=$(TOOLS)/grpc go install $(GRPC_GO)
	$(CONFORMANCE_HOME)/bin/pip install --quiet -r conformance/needs_of_http2.txt
	$(CONFORMANCE_HOME)/bin/python conformance/http2.py --server $(GUSTNADO) \
		--report docs/results/conformance-http2.md

# WebSockets against Autobahn's fuzzing client, two hours: writes
# docs/results/conformance-websocket.md.
conformance-websocket: autobahn
	$(CARGO) build --release -p gustnado --features tls --example websocket
	$(PYTHON) conformance/websocket.py --server target/release/examples/websocket \
		--wstest $(AUTOBAHN)/bin/wstest --report docs/results/conformance-websocket.md

# A page of 300 files in Chromium, from this server and from h2o: a minute, on a quiet machine.
page-load:
	$(CARGO) build --release -p gustnado-cli
	$(PYTHON) conformance/page_load.py --server $(GUSTNADO)

# Certificates by ACME, from pebble, which Go builds.
PEBBLE := github.com/letsencrypt/pebble/v2/cmd
conformance-acme:
	$(CARGO) build --release -p gustnado-cli
	GOBIN=$(CURDIR)/target/acme/bin go install $(PEBBLE)/pebble@v2.10.1
	GOBIN=$(CURDIR)/target/acme/bin go install $(PEBBLE)/pebble-challtestsrv@v2.10.1
	$(PYTHON) conformance/acme.py --server $(GUSTNADO) --tools target/acme/bin

# A million connections in one process: 8 GB of free memory and a few minutes.
c1m:
	$(PYTHON) bench/run.py c1m

fuzz:
	fuzz/run $(FUZZ_SECONDS)

# With the targets of TLS, too.
fuzz-all:
	FEATURES=tls fuzz/run $(FUZZ_SECONDS)

# All attacks at once on both backends, beside honest clients. `make hostile HOSTILE_FLAGS=--report`
# writes docs/results/hostile.md.
hostile:
	$(CARGO) build --release -p gustnado-cli
	$(PYTHON) bench/hostile.py --seconds $(HOSTILE_SECONDS) $(HOSTILE_FLAGS)
