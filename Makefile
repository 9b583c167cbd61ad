# Everything here works on a fresh machine with git, make and npm (or bun): Bun of the pinned version is fetched from
# the npm registry when it is not there. Who lives in Bun uses the scripts of package.json, which these targets call.

BUN_VERSION := 1.4.4
ifneq ($(MAKECMDGOALS),clean)
BUN := $(shell scripts/find-bun $(BUN_VERSION))
endif
# The scripts of package.json call it by its name.
export PATH := $(dir $(BUN)):$(PATH)

.PHONY: demo demo-cluster test test-long crash crash-cluster mutants check build bench release test-portable format docs clean nightly launcher launcher-check

demo: node_modules
	@$(BUN) run --silent demo

# Starts replicas, runtime services and a database on this machine, and kills some of them. Needs PostgreSQL.
demo-cluster: node_modules
	@$(BUN) examples/demo-cluster/main.ts

test: node_modules
	@$(BUN) run --silent test

# What takes longest: kills under load, waits for time limits, kernels of their own, benchmarks, container images.
test-long: node_modules
	@$(BUN) run --silent test --long

# What needs neither Linux nor the executables.
test-portable: node_modules
	@$(BUN) run --silent test --portable

check: node_modules
	@$(BUN) run --silent check

build: node_modules
	@$(BUN) run --silent build

# All that a user waits for, beside a floor: one run of at most seven minutes. RUNS of them give medians and ranges; PEERS is a
# directory in which bullmq and ioredis were installed from npm.
RUNS ?= 1
PEERS ?=
bench: node_modules
	@$(BUN) run --silent bench report --runs $(RUNS) $(if $(PEERS),--peers '$(PEERS)')

# Executables for all platforms, archives and checksums, in dist/release. RELEASES is the address of all releases.
release: node_modules
	@$(BUN) run --silent release $(if $(RELEASES),--releases '$(RELEASES)')

# Every test at its full size: some 500 kills in each crash test instead of 30, an hour of soak, ten minutes of load, 100,000
# requests.
nightly: node_modules
	@TASKMILL_NIGHTLY=1 $(BUN) run --silent test --all

# Kills services at random moments. SEED repeats a run, ROUNDS sets its length, TEST picks the tests whose titles have it.
SEED ?=
ROUNDS ?=
TEST ?=
crash: node_modules
	@TASKMILL_SEED='$(SEED)' TASKMILL_ROUNDS='$(ROUNDS)' $(BUN) run --silent test --crash $(if $(TEST),-t '$(TEST)')

# Kills, freezes and cuts off whatever can die in a cluster: replicas, runtime services, the database. SEED and ROUNDS as
# above; the message of a round that fails has its own seed.
crash-cluster: node_modules
	@TASKMILL_SEED='$(SEED)' TASKMILL_ROUNDS='$(ROUNDS)' $(BUN) run --silent test --all ./tests/crash/cluster.long.test.ts

# Puts faults into rules, one at a time, and runs the tests that have to notice them. RULE picks rules by a word of theirs.
RULE ?=
mutants: node_modules
	@$(BUN) scripts/mutate.ts '$(RULE)'

format: node_modules
	@$(BUN) run --silent format

docs: node_modules
	@$(BUN) run --silent docs

# The only C: the launcher, and what tries to escape from it. What is built of it is checked in; scripts/launcher-tools
# says what it takes to build it again.
launcher:
	@scripts/launcher-tools make -s -B -C runtime/launch record
	@scripts/launcher-tools make -s -B -C runtime/escape record

launcher-check:
	@scripts/launcher-tools scripts/launcher-check

clean:
	rm -rf dist node_modules .bun bench/results/raw

node_modules: package.json bun.lock
	@test -n "$(BUN)" || { echo "make: Bun $(BUN_VERSION) is not here and could not be fetched: install Bun $(BUN_VERSION), or npm, and let it reach the npm registry (network, proxy)" >&2; exit 1; }
	@NODE_EXTRA_CA_CERTS="$${NODE_EXTRA_CA_CERTS:-$(wildcard /etc/ssl/certs/ca-certificates.crt)}" $(BUN) install --frozen-lockfile --silent
	@touch node_modules
