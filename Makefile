# Everything but Debian's packages is set up inside this folder: .tools (uv), .venv, engine/target, workers/.
# `make help` lists the targets.

UV_VERSION := 0.13.8
PYTHON ?= python3
UV := .tools/bin/uv
# `make setup` has synchronised the environment; uv would build an engine that a wheel brought.
RUN := $(UV) run --no-sync --quiet
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Another program, such as Debian's own upgrades, may be installing: wait for it.
APT_GET := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600

# The interpreter is the machine's own: uv fetches none.
export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON := $(PYTHON)
# The tests start hundreds of interpreters. Without bytecode each of them compiles its libraries: seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help bench results bench-client bench-server bench-store peers fuzz test test-all test-rust test-python test-python-all check check-rust check-python format ratchets docs setup workers servers debian dist same-dist try-dist checksums release-check third-party clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

bench: ## Set up, then find the fastest Python client on this machine (about 5 minutes)
	@$(MAKE) --no-print-directory -j2 setup python-libraries
	@$(RUN) cachemark setup python
	@$(RUN) cachemark run quick

# Downloading for the most part, while the engine is built. The set-up afterwards finds it done, or says what failed.
.PHONY: python-libraries
python-libraries: $(UV)
	@workers/python/setup >/dev/null 2>&1 || true

results: debian ## Set up every language, play the suites of docs/results.md again and draw their pictures, on a quiet machine (about an hour)
	@$(MAKE) --no-print-directory languages
	@$(RUN) python benchmarks/results.py

bench-client: setup ## CPU time per operation of the native client, beside the floor and the peers on PATH; its lag, its memory (about 6 minutes)
	@$(RUN) python benchmarks/client.py

peers: setup ## Tables: the native client and the load generators on PATH: CPU time, rate, memory, errors of percentiles (about 30 minutes)
	@$(RUN) python benchmarks/peers.py

bench-server: setup ## CPU time of an operation: the embedded server, memcached and a null responder (about 10 minutes)
	@$(RUN) python benchmarks/server.py

bench-store: setup ## The item store against memcached: bytes, hits, reads; and how long single stores take (about 5 minutes)
	@$(RUN) cachemark-engine bench-store

SECONDS ?= 60
CARGO_FUZZ_VERSION := 0.13.2

fuzz: ## Search for inputs that break a parser or the store: SECONDS=60 for each target, or TARGETS="tape trace"
	@[ "$$(.tools/cargo/bin/cargo-fuzz --version 2>/dev/null)" = "cargo-fuzz $(CARGO_FUZZ_VERSION)" ] || { \
	  echo "fuzz: cargo-fuzz $(CARGO_FUZZ_VERSION) into .tools"; \
	  cargo install --quiet --locked --version $(CARGO_FUZZ_VERSION) --root .tools/cargo cargo-fuzz; }
	@PATH="$$PWD/.tools/cargo/bin:$$PATH" engine/fuzz/run $(SECONDS) $(TARGETS)

test: languages-and-test-rust ## Set up (Debian packages and every language too), then run the tests; `make test-all` has a few more
	@$(MAKE) --no-print-directory test-python

test-all: languages-and-test-rust ## The same, with the tests that take long
	@$(MAKE) --no-print-directory test-python-all

# The end of the engine's build is one crate on one core, and setting the languages up is downloading for the most part.
# So the engine's tests are built and run beside both: cargo locks each profile's folder by itself.
.PHONY: languages-and-test-rust languages bytecode
languages-and-test-rust: debian
	@$(MAKE) --no-print-directory -j3 languages test-rust bytecode

languages: setup
	@$(RUN) cachemark setup --install

# The ten processes of the tests begin with the same files at the same time: without bytecode each compiles all of
# them, and the libraries too. What is wrong with a file, the tests themselves say.
bytecode: setup
	@$(RUN) pytest --collect-only -qq >/dev/null 2>&1 || true

test-rust: ## The engine's tests
	cd engine && env -u MAKEFLAGS -u MFLAGS cargo test --quiet --locked

# A client's tests mostly wait, for time-outs and schedules: five processes for each of two cores. Groups of tests
# keep their order: tests/conftest.py puts those that take long first.
PYTEST := rm -f .pytest_cache/second-tries; $(RUN) pytest -n 10 --dist loadgroup --no-loadscope-reorder
# Some tests fail only because the others starve them. A real fault fails alone too, and both results are printed.
# The failures are known by their groups: without `loadgroup` none would be found, and everything would run again.
AGAIN := || { [ $$? = 1 ] && echo "The tests that failed, once more and alone:" && \
  $(RUN) pytest -n 1 --dist loadgroup --maxfail 50 --last-failed --last-failed-no-failures none; }

test-python: setup ## The orchestrator's and the workers' tests, end to end, without those marked as slow
	$(PYTEST) -m "not slow" $(AGAIN)

test-python-all: setup
	$(PYTEST) $(AGAIN)

.PHONY: surroundings
surroundings: languages ## Play every verb, and a client of each language, in all strange surroundings (about 40 minutes); ROWS="nohup 'umask 077'"
	@$(RUN) python -m tests.surroundings $(ROWS)

check: setup ## Formatters, linters, types, directions of imports, sizes, and docs that are printed from code
	@$(MAKE) --no-print-directory -j2 --output-sync=target check-rust check-python check-workers prose

check-rust: ## The engine's part of it
	cd engine && cargo fmt --check && cargo clippy --quiet --locked --all-targets -- -D warnings
	cd engine && cargo check --quiet --locked --tests -p cachemark-load  # alone, it has no TLS

check-python: setup ## The rest of it
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) pyright
	$(RUN) pyright --project tests
	$(RUN) lint-imports --no-cache --no-logo
	$(RUN) python tools/ratchets.py
	$(RUN) python -m cachemark.model.protocol_docs --check
	$(RUN) python -m tools.printed_docs --check

# Each linter where it is installed.
BIOME := .tools/node/node_modules/.bin/biome
CLANG_FORMAT := .venv/bin/clang-format
C_SOURCES = $(shell git ls-files 'workers/c/*.c' 'workers/c/*.h')
# The versions of the plugin and of its formatter are in pom.xml. Maven fetches them the first time.
SPOTLESS := mvn --quiet --batch-mode --non-recursive -f workers/java/pom.xml com.diffplug.spotless:spotless-maven-plugin
have = command -v $(1) >/dev/null || { echo "$@: left out: no $(1)"; exit 0; };

# Vale comes from the Go proxy, where there is a Go.
VALE := .tools/bin/vale
PROSE_PAGES = $(shell git ls-files '*.md')
# Vale takes minutes for all comments, git a moment: the words of its rule Subject, behind the mark of a comment.
HIDING := ("""|//[/!]? |\# |\* ).*\b(nobody|(those|said) of|so many|(is|are|was|were|be) told( [^fa]|[.,:;]|$$)|comes? to( [^bar]|[.,:;]|$$))
CODE := '*.py' '*.rs' '*.go' '*.c' '*.h' '*.java' '*.rb' '*.mjs' '*.php' '*.pm'

.PHONY: prose
prose: ## The style sheet's rules that a program can check (`make linters` installs the program)
	@! git grep -nIiE '$(HIDING)' -- $(CODE) || { echo "prose: name who acts, or the thing (CONTRIBUTING, \"Style\")"; exit 1; }
	@$(call have,$(VALE)) $(VALE) --output line $(PROSE_PAGES)

.PHONY: check-workers linters quick quick-lint
check-workers: ## Formatters and linters of the workers' languages, as far as they are installed (`make linters`)
	@$(call have,gofmt) cd workers/go && test -z "$$(gofmt -l .)" && go vet ./...
	@$(call have,cargo) cd workers/rust && cargo fmt --check && cargo clippy --quiet --locked --all-targets -- -D warnings
	@$(call have,$(CLANG_FORMAT)) $(CLANG_FORMAT) --dry-run -Werror $(C_SOURCES)
	@$(call have,cppcheck) cd workers/c && cppcheck --quiet --std=c11 --enable=warning,performance,portability \
	  --inline-suppr --error-exitcode=1 *.c clients/*.c
	@$(call have,mvn) $(SPOTLESS):check
	@$(call have,rubocop) rubocop --config workers/ruby/.rubocop.yml --format simple workers/ruby >/dev/null || \
	  rubocop --config workers/ruby/.rubocop.yml workers/ruby
	@$(call have,perlcritic) perlcritic --profile workers/perl/.perlcriticrc --quiet workers/perl
	@$(call have,phpcs) cd workers/php && git ls-files '*.php' | xargs -n 1 php -l >/dev/null && phpcs -n -q --standard=phpcs.xml
	@$(call have,$(BIOME)) cd workers/node && ../../$(BIOME) check --error-on-warnings .

linters: ## Install the linters of the workers' languages and of prose: Debian packages, the others into .tools
	@missing=""; for pair in cppcheck:cppcheck rubocop:rubocop perlcritic:libperl-critic-perl phpcs:php-codesniffer; do \
	  command -v "$${pair%%:*}" >/dev/null || missing="$$missing $${pair##*:}"; done; \
	[ -z "$$missing" ] || { $(APT_GET) update -qq && $(APT_GET) install -y -qq --no-install-recommends $$missing >/dev/null; }
	@if command -v go >/dev/null; then \
	  (cd tools/linters/vale && CGO_CFLAGS=-w GOTOOLCHAIN=local go build -o ../../../$(VALE) github.com/vale-cli/vale/v3/cmd/vale) || \
	  echo "linters: no vale, for this reason; it needs a C compiler and Go $$(sed -n 's/^go //p' tools/linters/vale/go.mod) or later"; fi
	@command -v npm >/dev/null || exit 0; \
	mkdir -p .tools/node && cp tools/linters/package.json tools/linters/package-lock.json .tools/node && \
	cd .tools/node && npm ci --silent --no-audit --no-fund

quick-lint: ## Formatters and linters that take seconds
	@$(RUN) ruff format --check --quiet .
	@$(RUN) ruff check --quiet .
	@$(RUN) lint-imports --no-cache --no-logo >/dev/null
	@$(RUN) python tools/ratchets.py
	@$(call have,cargo) cd engine && cargo fmt --check

# Tests that compute and start no program. These files take long, need a browser or programs of others, or start some.
QUICK := tests/model tests/analysis tests/report $(addprefix tests/cli/test_,compare.py display.py history.py out_files.py)
NOT_QUICK := $(addprefix --ignore=tests/,analysis/rounds/test_simulation.py model/test_factors.py \
  analysis/statistics/test_simulated_experiments.py $(patsubst %,report/test_%.py,html_browser readers cpu_dispatch \
  hostile_text exports suites_first first_place first_of_sets plots line_plots figures_again figures_of_blocks one_figure_one_value server_sections server_loads))
PURE_CRATES := $(addprefix -p cachemark-,packets protocol storage trace)
# Others are built in two fifths of the CPU time. Generated cases of these need their code optimised; `make test` plays
# four times as many of them.
QUICK_PROFILE := $(addprefix --config profile.dev.,opt-level=0 package.cachemark-storage.opt-level=1 \
  package.cachemark-trace.opt-level=1 package.proptest.opt-level=1)

.PHONY: quick-python quick-rust
quick: ## What needs no network and no other program: quick linters, tests of pure rooms and, where engine/ changed, of its pure crates
	@$(MAKE) --no-print-directory -j2 quick-python quick-rust

quick-python: quick-lint
	@$(RUN) pytest -n 2 -m "not slow" -p no:cacheprovider $(QUICK) $(NOT_QUICK)

# Built the first time, these crates need more than the rest together: they are left out where engine/ is as in origin.
quick-rust:
	@$(call have,cargo) base=$$(git merge-base HEAD origin/HEAD 2>/dev/null) && git diff --quiet "$$base" -- engine && \
	  [ -z "$$(git ls-files --others --exclude-standard engine)" ] && { \
	  echo "$@: left out: engine/ has no change (\`make test-rust\` plays all of its tests)"; exit 0; }; \
	cd engine && env -u MAKEFLAGS -u MFLAGS PROPTEST_CASES=64 \
	  cargo test --quiet --locked $(QUICK_PROFILE) $(PURE_CRATES)

# How much of each room the tests run: to look at, no limit. TESTS="tests/model tests/report" plays a part.
TESTS ?= tests
COVERAGE := .tools/coverage
ROOMS := model host endpoints analysis checks runs agents report web cli
CARGO_LLVM_COV_VERSION := 0.9.1
CRATES = $(patsubst engine/crates/%/Cargo.toml,%,$(wildcard engine/crates/*/Cargo.toml))
LLVM_COV := PATH="$(CURDIR)/.tools/cargo/bin:$$PATH" cargo llvm-cov

.PHONY: coverage coverage-python coverage-rust
coverage: coverage-python coverage-rust ## The share of lines that tests run, by room and by crate (half an hour); TESTS="tests/model"

coverage-python: export CACHEMARK_COVERAGE := $(CURDIR)/$(COVERAGE)/data
coverage-python: setup
	@rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	@$(RUN) coverage run -m pytest -n 4 --dist loadgroup -m "not slow" $(TESTS) || true
	@$(RUN) coverage combine --quiet
	@for room in $(ROOMS); do \
	  printf '%-10s %3s %%\n' $$room "$$($(RUN) coverage report --format=total --include="src/cachemark/$$room/*")"; done
	@printf '%-10s %3s %%\n' all "$$($(RUN) coverage report --format=total)"

coverage-rust:
	@[ -x .tools/cargo/bin/cargo-llvm-cov ] || { \
	  echo "coverage: cargo-llvm-cov $(CARGO_LLVM_COV_VERSION) into .tools"; rustup component add llvm-tools && \
	  cargo install --quiet --locked --version $(CARGO_LLVM_COV_VERSION) --root .tools/cargo cargo-llvm-cov; }
	@cd engine && $(LLVM_COV) --quiet --locked --workspace --no-report --ignore-run-fail
	@cd engine && for crate in $(subst _,-,$(CRATES)); do \
	  $(LLVM_COV) report --summary-only --quiet -p cachemark-$$crate | \
	    awk -v crate=$$crate '/^TOTAL/ { printf "%-14s %6s\n", crate, $$10 }'; done

# The tools look into databases of the network. Each says what it found, or that it could not look; so says the end.
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := .tools/cargo/bin/cargo-deny
GOVULNCHECK_VERSION := v1.9.0
audited = echo "audit: $(1)"; ($(2)) || { echo "audit: $(1): there is a known weakness, or no answer: see above"; \
  touch .tools/audit; };

.PHONY: audit
audit: setup ## Known vulnerabilities of the locked packages: PyPI, crates.io, npm, Go; licences of crates; not part of .ci/run
	@rm -f .tools/audit
	@$(call audited,PyPI,$(UV) audit --quiet --locked && $(UV) audit --quiet --locked --project workers/python)
	@$(call have,cargo) [ -x $(CARGO_DENY) ] || { \
	  echo "audit: cargo-deny $(CARGO_DENY_VERSION) into .tools"; \
	  cargo install --quiet --locked --version $(CARGO_DENY_VERSION) --root .tools/cargo cargo-deny; }
	@$(call have,$(CARGO_DENY)) for folder in engine workers/rust; do \
	  deny="$(CARGO_DENY) --manifest-path $$folder/Cargo.toml --config tools/linters/deny.toml check --hide-inclusion-graph"; \
	  $(call audited,licences and sources of crates for $$folder,$$deny bans licenses sources) \
	  $(call audited,crates.io for $$folder,$$deny advisories) done
	@$(call have,npm) for folder in workers/node tools/linters; do \
	  $(call audited,npm for $$folder,cd $$folder && npm audit --package-lock-only) done
	@$(call have,go) $(call audited,Go,cd workers/go && \
	  go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...)
	@echo "audit: left out: Maven's and RubyGems' packages; what Debian brings, Debian mends"
	@[ ! -e .tools/audit ]

format: setup ## Format everything whose formatter is installed
	cd engine && cargo fmt
	$(RUN) ruff format .
	$(RUN) ruff check --fix .
	@$(call have,gofmt) gofmt -w workers/go
	@$(call have,cargo) cd workers/rust && cargo fmt
	@$(call have,$(CLANG_FORMAT)) $(CLANG_FORMAT) -i $(C_SOURCES)
	@$(call have,mvn) $(SPOTLESS):apply
	@$(call have,$(BIOME)) cd workers/node && ../../$(BIOME) format --write .

ratchets: setup ## Lower the limits on sizes to the sizes of today
	$(RUN) python tools/ratchets.py --lower

docs: setup ## Print PROTOCOL.md, its JSON Schema, docs/experiment.md and tables of docs/ci.md and docs/resilience.md from the code; build the documentation site into site/html
	@$(RUN) python -m cachemark.model.protocol_docs
	@$(RUN) python -m tools.printed_docs
	@$(RUN) python -m tools.docs_site

setup: packages ## Python environment and engine, built again where their sources changed
	@$(PYTHON) -m tools.packed_engine || $(MAKE) --no-print-directory built-engine

.PHONY: packages built-engine
packages: $(UV)
	@echo "setup: Python packages into .venv"
	@$(UV) sync --locked --quiet --inexact --no-install-package cachemark-engine

built-engine:
	@command -v cargo >/dev/null || { \
	  echo "setup: no Rust toolchain: install rustup's stable, or apt-get install cargo-web"; exit 1; }
	@command -v cc >/dev/null || { \
	  echo "setup: a C compiler is missing: installing gcc with $(SUDO) apt-get"; \
	  $(APT_GET) update -qq && $(APT_GET) install -y -qq --no-install-recommends gcc libc6-dev >/dev/null; }
	@$(PYTHON) tools/build_engine.py
	@$(UV) sync --locked --quiet

workers: setup ## The client libraries of every language whose toolchain is here, each into its own folder
	@$(RUN) cachemark setup

servers: setup ## The servers that are built on demand: Infinispan and jmemcached (Maven)
	@$(RUN) cachemark servers --setup infinispan

# program:package
DEBIAN := memcached:memcached saslpasswd2:sasl2-bin saslpasswd2:libsasl2-modules pypy3:pypy3 pypy3:pypy3-dev yrmcdsd:yrmcds nutcracker:nutcracker \
  chromium:chromium chromedriver:chromium-driver \
  memccapable:libmemcached-tools openssl:openssl tcpdump:tcpdump \
  strace:strace valgrind:valgrind perf:linux-perf nytprofcalls:libdevel-nytprof-perl ruby:ruby hyperfine:hyperfine /usr/share/benchmark/compare.py:libbenchmark-tools

# pylibmc has no wheels for Python 3.12 and later.
PYTHON_H = $(shell $(PYTHON) -c "import sys, sysconfig as s; print(s.get_path('include') + '/Python.h') if sys.version_info >= (3, 12) else 0")
HEADERS = $(if $(PYTHON_H),$(if $(wildcard $(PYTHON_H)),,Python.h:python3-dev Python.h:libmemcached-dev Python.h:zlib1g-dev))

# Packages that this release of Debian does not have are asked for once.
debian: ## Debian packages that the tests need: servers, PyPy, a browser, readers of exports (through sudo if not root)
	@missing=""; PATH="$$PATH:/usr/sbin:/sbin"; absent=" $$(cat .tools/absent-packages 2>/dev/null | tr '\n' ' ')"; \
	for pair in $(DEBIAN) $(HEADERS); do \
	  case "$$absent" in *" $${pair##*:} "*) continue;; esac; \
	  command -v "$${pair%%:*}" >/dev/null || missing="$$missing $${pair##*:}"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then \
	  echo "debian: please install$$missing by hand: there is no apt-get"; exit 1; fi; \
	$(APT_GET) update -qq || exit 1; \
	found=""; for package in $$missing; do \
	  if apt-cache show "$$package" >/dev/null 2>&1; then found="$$found $$package"; else \
	    echo "debian: this release has no package $$package: the tests that need it are skipped"; \
	    mkdir -p .tools; echo "$$package" >> .tools/absent-packages; fi; done; \
	if [ -z "$$found" ]; then exit 0; fi; \
	echo "debian: installing$$found with $(SUDO) apt-get"; \
	$(APT_GET) install -y -qq --no-install-recommends $$found >/dev/null

dist: $(UV) ## Wheels and sdists of the last commit into dist/, with checksums
	@$(UV) run --no-project --quiet python -m tools.dist

same-dist: $(UV) ## Build the packages again, and compare them with those in dist/, byte for byte
	@$(UV) run --no-project --quiet python -m tools.dist --again

checksums: $(UV) ## Write dist/SHA256SUMS again, for wheels of other processors that were copied into dist/
	@$(UV) run --no-project --quiet python -m tools.dist --checksums

try-dist: $(UV) ## Install the wheels of dist/ into a clean environment, and use them; then the sdists
	@$(UV) run --no-project --quiet python -m tools.try_packages
	@$(UV) run --no-project --quiet python -m tools.try_packages --sdist

release-check: $(UV) ## Whether the last commit and dist/ are a release: tag, changelog, licences, parts, checksums
	@$(UV) run --no-project --quiet python -m tools.release_check

third-party: setup ## Print THIRD-PARTY.csv: the packages of others, with their licences
	@$(RUN) python tools/third_party.py

clean: ## Remove everything that was set up
	rm -rf .tools .venv dist site engine/target engine/fuzz/target engine/fuzz/corpus engine/fuzz/artifacts
	git clean -fdXq workers src tests tools benchmarks

$(UV):
	@echo "setup: uv $(UV_VERSION) into .tools"
	@$(PYTHON) -m venv .tools 2>/dev/null || { \
	  rm -rf .tools; \
	  echo "setup: Python's venv is missing: installing python3-venv with $(SUDO) apt-get"; \
	  $(APT_GET) update -qq && $(APT_GET) install -y -qq python3-venv >/dev/null && \
	  $(PYTHON) -m venv .tools; }
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
