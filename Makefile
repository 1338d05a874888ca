# make help says what there is. V=1 shows the commands and what they say.

GO ?= go
BIN := $(CURDIR)/bin

# Another architecture's, from this machine: make build ARCH=arm64 leaves its files in bin/arm64. Debian's compiler for the libraries is in the
# package gcc-aarch64-linux-gnu; CC names another one.
ARCH :=
OUT := $(BIN)$(addprefix /,$(ARCH))
ifneq ($(ARCH),)
CROSS_amd64 := x86_64-linux-gnu-
CROSS_arm64 := aarch64-linux-gnu-
CROSS := $(or $(CROSS_$(ARCH)),$(error ARCH is amd64 or arm64))
ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
CROSS_BUILD = CC='$(CC)' BUILD=build/$(ARCH)
endif
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(BIN)/tools/golangci-lint-$(GOLANGCI_LINT_VERSION)

# What --version and mpit_exporter_build_info say. Nothing of it changes between two builds of one commit.
ifndef VERSION
VERSION := $(shell scripts/version)
endif
REVISION := $(shell git rev-parse -q --verify HEAD 2>/dev/null || echo unknown)
DATE := $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
INFO := github.com/prometheus/common/version
LDFLAGS := -s -w -X $(INFO).Version=$(VERSION) -X $(INFO).Revision=$(REVISION) -X $(INFO).BuildDate=$(DATE)

# The wrappers of the call profile are most of what is to be compiled. Where somebody has said -j, that holds.
PARALLEL = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

# make test compiles as make exporter does: what is in the exporter, and all that it depends on, is compiled once.
# Without what a debugger reads, linking takes half as long. What vet says, make lint says, too.
GO_TEST := CGO_ENABLED=0 $(GO) test -trimpath -vet=off -ldflags='-s -w'

TEST_PARTS := test-without-jobs test-e2e
TEST_TIMEOUT ?= 60m
SOAK_SECONDS ?= 600
DIST_ARCHES ?= amd64 arm64
TEST_DIST_ARCHES ?= $(shell $(GO) env GOARCH)
PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: exporter agent ## bin/mpit-exporter, bin/libmpit-agent.so and bin/libmpit-calls.so (ARCH=arm64: in bin/arm64)

# Without cgo, so that the binary runs on every node whatever its C library.
.PHONY: exporter
exporter:
	@mkdir -p $(OUT)
	@scripts/step 'compiling the exporter (the first time with all that it depends on: a minute or more)' \
		env $(if $(ARCH),GOARCH=$(ARCH) )CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(OUT)/.mpit-exporter.new ./cmd/mpit-exporter
	@mv $(OUT)/.mpit-exporter.new $(OUT)/mpit-exporter

# Both libraries that are preloaded: the agent and, in CALLS_OUT, the call profile, whose wrappers a Go program writes.
.PHONY: agent
agent:
	@mkdir -p $(OUT)
	@scripts/step 'compiling the libraries for the ranks (a wrapper for every function of MPI)' \
		$(MAKE) --no-print-directory $(PARALLEL) -C mpit/agent OUT=$(OUT)/libmpit-agent.so CALLS_OUT=$(OUT)/libmpit-calls.so $(CROSS_BUILD) GO='$(GO)' VERSION='$(VERSION)'

.PHONY: install
install: ## what make build has built, below PREFIX (/usr/local); DESTDIR goes in front
	@scripts/install-files '$(DESTDIR)' '$(PREFIX)'

.PHONY: deb rpm packages
deb: ## bin/dist/mpit-exporter_<version>_<architecture>.deb (ARCH, VERSION)
rpm: ## bin/dist/mpit-exporter-<version>-1.<architecture>.rpm (ARCH, VERSION)
packages: KINDS = tar deb rpm
deb rpm: KINDS = $@
deb rpm packages: build
	$(if $(ARCH),@$(MAKE) --no-print-directory exporter ARCH=)
	@ARCH='$(ARCH)' STRIP='$(CROSS)strip' VERSION='$(VERSION)' scripts/package $(KINDS)

.PHONY: dist
dist: ## bin/dist: all that a release has, for amd64 and arm64: tarballs, .deb, .rpm and SHA256SUMS (VERSION)
	@DIST_ARCHES='$(DIST_ARCHES)' scripts/install-deps dist
	@rm -rf $(BIN)/dist
	@for arch in $(DIST_ARCHES); do $(MAKE) --no-print-directory packages ARCH=$$arch VERSION='$(VERSION)' || exit 1; done
	@cd $(BIN)/dist && sha256sum mpit-exporter* > .SHA256SUMS && mv .SHA256SUMS SHA256SUMS

.PHONY: install-deps
install-deps: ## install what demo, test and bench need (Debian, Ubuntu)
	scripts/install-deps test

.PHONY: demo
demo: ## a real 4-rank MPI job and its page at http://localhost:10093/ until Ctrl-C (DEMO_MPI, DEMO_PORT, DEMO_SECONDS)
	@# Ctrl-C is the way to end it, also while it is built: not an error.
	@trap 'exit 0' INT; \
	scripts/install-deps demo || echo 'make: no Open MPI can be installed: the demo will show simulated ranks' >&2; \
	bash -c '$(MAKE) --no-print-directory build 2> >(grep -v "Error 130$$" >&2)' && scripts/demo

.PHONY: test
test: ## formatting, unit tests, the agent's tests, whole jobs with Open MPI and MPICH
	@scripts/install-deps test
	@start=$$(date +%s); $(MAKE) --no-print-directory build && \
	for part in $(TEST_PARTS); do scripts/step "make $$part" $(MAKE) --no-print-directory -o build $$part || exit 1; done && \
	echo "everything passed in $$((($$(date +%s) - start) / 60)) min"

.PHONY: test-distributions
test-distributions: ## demo and test on Debian 13 and sid, the libraries on Debian 11, arm64 and the standard ABI: hours, as root
	@scripts/test-distributions

.PHONY: test-slurm
test-slurm: build ## jobs under a real Slurm with three nodes on this machine: over nodes, arrays, cancelled, a node that fails; as root
	@scripts/test-slurm

.PHONY: test-format
test-format:
	@for module in . test; do cd $(CURDIR)/$$module; \
		has=$$(sed -n 's/^go //p' go.mod); needs=$$($(GO) list -test -deps -f '{{with .Module}}{{if not .Main}}{{if not .Replace}}{{.GoVersion}}{{end}}{{end}}{{end}}' ./... | sort -uV | tail -n 1); \
		test "$$has" = "$$needs" || { echo "$$module/go.mod asks for Go $$has, and what it requires for $$needs" >&2; exit 1; }; done
	@files=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
		test -z "$$files" || { echo "gofmt these (make fmt): $$files" >&2; exit 1; }
	@scripts/lint-docs

# Most of these use one core: they run beside one another.
.PHONY: test-without-jobs
test-without-jobs: build
	@$(MAKE) --no-print-directory $(PARALLEL) --output-sync -o build test-unit test-agent test-format test-unit-file

# What systemd makes of the unit in examples/systemd.
.PHONY: test-unit-file
test-unit-file: build
	@scripts/check-unit

.PHONY: test-packages
test-packages: build ## not in make test, but in CI: the packages, in a copy of this machine's file system
	@scripts/test-packages

.PHONY: test-dist
test-dist: ## not in make test, but in CI: a release made twice, in two directories: the same files (TEST_DIST_ARCHES: this machine's)
	@DIST_ARCHES='$(TEST_DIST_ARCHES)' scripts/test-dist

.PHONY: test-unit
test-unit: build
	MPIT_TEST_BUILT=1 $(GO_TEST) -timeout $(TEST_TIMEOUT) ./...

# Everything takes three times as long under the race detector, so properties are tried less often there. What else -short leaves out happens
# in other processes than the tests'.
.PHONY: test-race
test-race: ## not in make test, but in CI: the unit tests again, under the race detector
	$(GO) test -race -short -timeout $(TEST_TIMEOUT) ./cmd/... ./exporter/... ./mapping/... ./mpit/...

# Each benchmark once: not for its figures, but so that it is known to run. Of packages without one nothing need be linked.
.PHONY: test-bench
test-bench: ## not in make test, but in CI: each benchmark once
	@out=$$($(GO_TEST) -short -run '^$$' -bench . -benchtime 1x \
		$$(git grep -l --untracked '^func Benchmark' -- '*_test.go' ':!test/' | xargs -n 1 dirname | sort -u | sed 's,^,./,') 2>&1) || { echo "$$out" >&2; exit 1; }

# Most of its time is the compiler's.
.PHONY: test-more
test-more: build ## not in make test, but in CI: other builds (sanitizers, valgrind, packages' flags, beside release 0.1.0), and what docs walk newcomers through
	@$(MAKE) --no-print-directory $(PARALLEL) --output-sync -C mpit/agent test-instrumented GO='$(GO)' VERSION='$(VERSION)'
	cd test && MPIT_TEST_BUILT=1 MPIT_TEST_MORE=1 $(GO_TEST) -count=1 -timeout $(TEST_TIMEOUT) -run 'Memcheck|Saniti|FixtureIsSound|CompiledAsPackages|VersionSkew|Walkthroughs' \
		./e2e ./fixture

.PHONY: test-agent
test-agent:
	@$(MAKE) --no-print-directory $(PARALLEL) -C mpit/agent test GO='$(GO)' VERSION='$(VERSION)'

# Most of these tests, which are real jobs, wait most of the time, for launchers or for what is to be
# seen on a page: five of a package run beside each other (t.Parallel), and e2e beside the other packages, one at a time.
# What dashboards show of jobs is compared with what these did, so that dashboards come last, when e2e has nearly ended.
E2E_PACKAGES := ./e2e ./fixture ./page ./cluster ./conformance ./node
.PHONY: test-e2e
test-e2e: build
	cd test && MPIT_TEST_BUILT=1 $(GO_TEST) -count=1 -p 2 -parallel 5 -timeout $(TEST_TIMEOUT) $(E2E_PACKAGES) \
		$$($(GO) list ./... | grep -v /dashboards$$) ./dashboards

# ENGINES: directories with their programs, separated by colons. Of those that are missing it says so.
.PHONY: test-engines
test-engines: build ## what other servers answer to rules, alerts and panels, beside Prometheus 2.42 (ENGINES=/usr/bin:/opt/…)
	cd test && MPIT_TEST_BUILT=1 MPIT_TEST_ENGINES='$(or $(ENGINES),$(error ENGINES names directories with programs))' \
		$(GO) test ./dashboards -count=1 -v -run '^TestEngines' -timeout $(TEST_TIMEOUT)

.PHONY: bench-cluster
bench-cluster: build ## what the exporters of a cluster whose jobs come and go cost a Prometheus (BENCH_NODES=100 BENCH_RANKS=16 of each, BENCH_LOAD=80 %, BENCH_EXEC=--calls, BENCH_SPEED=8, BENCH_MINUTES=25, BENCH_AGENT=1: an agent and a receiver, too)
	cd test && $(GO) test ./cluster -run '^$$' -bench Cluster -benchtime 1x -timeout 0 -v

.PHONY: bench-scale
bench-scale: build ## what a Prometheus, agents with a ruler, VictoriaMetrics and Thanos need at three sizes (BENCH_ENGINES=directories with their programs, BENCH_SCALE=125,250,500 nodes, BENCH_RANKS=32 of each, BENCH_MINUTES=5, BENCH_SPEED=8)
	cd test && $(GO) test ./cluster -run '^$$' -bench Scale -benchtime 1x -timeout 0 -v

.PHONY: bench-disk
bench-disk: build ## what three sites need on a Prometheus' disk, written by promtool in simulated time, and how far docs/capacity.md's formula is off (BENCH_NODES=4 BENCH_RANKS=2 of each, BENCH_HOURS=4, BENCH_EXEC=--calls)
	cd test && $(GO) test ./cluster -run '^$$' -bench Disk -benchtime 1x -timeout 0 -v

.PHONY: bench-rules
bench-rules: build ## what each rule costs a Prometheus, in CPU a rank and minute (BENCH_NODES=32 BENCH_RANKS=32 of each)
	cd test && $(GO) test ./cluster -run '^$$' -bench Rules -benchtime 1x -timeout 0 -v

.PHONY: bench-boards
bench-boards: build ## what each query of the dashboard One MPI job costs a Prometheus at 1 h, 24 h and 7 days, of a job of 4,096 ranks (BENCH_RANKS=64 of the one that is tried, BENCH_QUERIES=pattern)
	cd test && $(GO) test ./cluster -run '^$$' -bench Boards -benchtime 1x -timeout 0 -v

# BENCH_BESIDE: the path of another build of the exporter, in the same run. BENCH_FLAGS: such as -count 3, or -bench Node/.*/format=text$$
.PHONY: bench-node
bench-node: build ## one node with $BENCH_RANKS simulated ranks (1,024) in each format, with ranks that stop and come, beside client_golang
	cd test && $(GO) test ./node -run '^$$' -bench . -benchtime 20x -timeout 0 $(BENCH_FLAGS)

.PHONY: bench
bench: build ## Go benchmarks; a sample's cost in the agent; memory, ping-pong and allreduce with and without the agent
	@scripts/install-deps bench
	$(GO) test -run '^$$' -bench . -benchmem ./...
	@$(MAKE) --no-print-directory -s -C mpit/agent bench
	cd test && MPIT_TEST_BUILT=1 $(GO) test ./e2e -run '^$$' -bench Memory -benchtime 5x
	@scripts/bench-mpi

# PEERS are directories with what is already built; versions are theirs to tell.
.PHONY: bench-peers
bench-peers: build ## --calls beside other tools that measure MPI calls: one call, ping-pong, allreduce, MPI_Init, memory (PEERS=/opt/mpip/lib:/opt/dlb/lib)
	@scripts/install-deps bench
	@PEERS=$(or $(PEERS),$(error PEERS= names the directories with libmpiP.so or libdlb_mpi.so)) scripts/bench-mpi

# Needs the network, for npm's packages: no part of `make test`.
.PHONY: draw
draw: build ## the pictures of the dashboards in docs/img, of real jobs, by Grafana's components (DRAW_SECONDS, DRAW_OUT)
	@scripts/draw

.PHONY: soak
soak: build ## jobs and faults of all kinds: no sample is lost, nothing grows; storms of objects read at 1 kHz: nothing changes (SOAK_SECONDS)
	@scripts/install-deps test
	@SOAK_SECONDS=$(SOAK_SECONDS) scripts/soak

# ZOO chooses kinds (a pattern of go test's, such as mpich/collectives-.*), SEEDS how often each is run.
.PHONY: zoo
zoo: build ## how good the verdict is: programs with planted trouble, and healthy ones, in hours (SEEDS, ZOO, ZOO_CALLS=light)
	@scripts/install-deps zoo
	cd test && MPIT_TEST_BUILT=1 $(GO) test ./zoo -count=1 -timeout 0 -v -run '^TestZoo$$/$(ZOO)' \
		-args -zoo -zoo.seeds=$(or $(SEEDS),3) -zoo.calls=$(or $(ZOO_CALLS),peers)

.PHONY: lint-tool
lint-tool: $(GOLANGCI_LINT)

# Built by this Go, from source: a released binary refuses modules of a newer Go than its own.
$(GOLANGCI_LINT):
	@mkdir -p $(@D)
	cd / && GOFLAGS= GOBIN=$(@D) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(@D)/golangci-lint $@

.PHONY: lint
lint: $(GOLANGCI_LINT) ## golangci-lint, of both modules, no line too long, and the words of the documentation
	@scripts/lint-lines
	@scripts/lint-docs
	$(GOLANGCI_LINT) run ./...
	cd test && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...

.PHONY: fmt
fmt: ## gofmt everything
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN)
	@$(MAKE) --no-print-directory -C mpit/agent clean
