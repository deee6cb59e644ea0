# SPDX-License-Identifier: Apache-2.0
#
# The entry point. 'make' alone lists all targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
# One installation and one build at a time, also with -j.
.NOTPARALLEL:

# $(call quote,TEXT) - TEXT as one word for the shell, whatever it contains
quote = '$(subst ','\'',$(1))'

# What Scripts/build/install-dependencies says goes on once everything is installed.
export GO_ON = $(strip make $(MAKECMDGOALS) $(MAKEOVERRIDES))

# Where things are built, and further flags for every build: make test SWIFT_FLAGS='-Xswiftc -warnings-as-errors'
SCRATCH ?= .build
SWIFT_FLAGS ?=
# What Package.swift adds to a plain package: 'development' has its tests run faster, 'whole' compiles modules as a whole,
# which takes less, but all of it again after each edit, and 'strict' makes warnings errors. If you edit, export
# NOTIFYBUS_FLAGS=development, which 'swift build' and 'swift test' need too.
export NOTIFYBUS_FLAGS ?= development whole

COMMANDS := notify-post notify-wait notify-lifecycle notify-state notify-top notify-agent
SWIFT_SOURCES := Package.swift Snippets Sources Tests Bindings/conformance/swift Benchmarks/Package.swift Benchmarks/Sources \
	Examples/SharedDefaults/Package.swift Examples/SharedDefaults/Sources \
	Examples/Server/Package.swift Examples/Server/Sources Examples/Server/Tests
# Not <notify.h>, which any compiler reads, and people.
C_SOURCES = $(shell find Sources Tests Benchmarks Bindings -name .build -prune -o -name '*.[ch]' ! -name notify.h -print)
SCRIPTS := $(filter-out %.mk %.py,$(sort $(wildcard Scripts/*/*))) Benchmarks/Peers/wait-with-dbus-monitor .ci/run \
	Examples/check-examples Examples/notify-open/notify-open Bindings/build-packages Bindings/conformance/check-packages

# The hardening that distributions expect of C programs. Swift does the rest anyway, or it needs a preprocessed header.
HARDENED := -Xcc -fstack-protector-strong -Xcc -fstack-clash-protection \
	-Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now
# Keeps the folder's path out of the build, so that two builds are identical. The compiler would also put a hash of its
# intermediate code, in which the path occurs, into a section '.swift_modhash', to skip what has not changed. And the
# debug information would name the compiled C modules, whose file names contain a hash of the path.
REPRODUCIBLE := -Xswiftc -file-prefix-map -Xswiftc "$$PWD=." -Xcc "-ffile-prefix-map=$$PWD=." \
	-Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen \
	-Xswiftc -Xfrontend -Xswiftc -no-clang-module-breadcrumbs
# Puts each function of C into a section of its own, so that the linker can drop unused ones.
SECTIONS := -Xcc -ffunction-sections -Xcc -fdata-sections
# What to strip from the commands: -s removes all function names, and nothing for debuggers is made; empty keeps both.
STRIP ?= -s
# Commands include the Swift library and, if possible, everything else as well: 'notify-post --version' takes 1.2 ms
# this way, 1.6 ms when only the C library is shared, and 4.5 ms when the dynamic linker has to find and relocate the
# toolchain's libraries first (2 cores; /bin/true takes 0.7 ms). A static program must not search for libraries.
OPTIMIZED := -c release -Xswiftc -use-ld=lld --static-swift-stdlib --disable-local-rpath $(HARDENED) $(SECTIONS) \
	$(REPRODUCIBLE) $(if $(STRIP),-Xswiftc -gnone) $(SWIFT_FLAGS)
# SwiftPM would not notice that the libraries to link with are found elsewhere than at its last build.
RELEASE := $(OPTIMIZED) --scratch-path $(call quote,$(SCRATCH)) --disable-build-manifest-caching
# They also include libdbus and the C++ library, if the system has archives of them: see Scripts/build/static-libraries.
# Packages set LIBRARIES=shared, so that a distribution can fix a library once instead of in each program.
LIBRARIES ?= static
STATIC := $(SCRATCH)/$(LIBRARIES)
# Each of the 26,000 addresses that a start has to relocate takes a bit instead of 24 bytes: notify-post takes 5.9 MB
# instead of 6.8. The C library reads that since 2.36.
PACKED := $(if $(shell getconf GNU_LIBC_VERSION 2>/dev/null | awk '{ split($$2, v, "."); if (v[1] > 2 || v[2] >= 36) print 1 }'),\
	-Xlinker -z -Xlinker pack-relative-relocs)
# Here are flags of the linker alone: a flag of the compiler would compile everything again for the library, which is
# linked differently.
LINKER := -Xlinker --gc-sections -Xlinker --as-needed $(PACKED)
RELEASE_LINK := -Xlinker "-L$$static" $(LINKER) $(if $(STRIP),-Xlinker $(STRIP))
# The Swift library would abort a program that finds no /proc: see CSwiftStart.h.
WITHOUT_PROC := -Xlinker --wrap=swift_copyAuxiliaryExecutablePath
# Recipes that link begin with this: the shell, unlike make, handles paths with spaces.
FIND_STATIC = static=$$(realpath --canonicalize-missing -- $(call quote,$(STATIC))); \
	export PKG_CONFIG_PATH="$$static$${PKG_CONFIG_PATH:+:$$PKG_CONFIG_PATH}"
# No program looks up functions by name in the commands, which Swift's compiler would export: 0.4 MB.
PROGRAM = -Xlinker --no-export-dynamic $(COMMIT)
# In git, the commit and a digit for changes since, which --version shows. The address of a symbol is a number that the
# linker can be told, so nothing is compiled again for it.
COMMIT = $(if $(wildcard .git),$(shell commit=$$(git rev-parse --short=12 HEAD 2>/dev/null) && \
	echo "-Xlinker --defsym=notifybus_commit=0x$$commit$$([ -z "$$(git status --porcelain)" ]; echo $$?)"))
# The C library is loaded into other programs, so it shares libdbus and the C++ library with them.
LIBRARY_LINK := $(if $(STRIP),-Xlinker $(STRIP)) $(LINKER)
# Without edits no debugger is used, and debug information takes a tenth of the compiler's time.
ONCE := $(if $(filter whole,$(NOTIFYBUS_FLAGS)),-debug-info-format none)
DEBUG := --scratch-path $(call quote,$(SCRATCH)) $(ONCE) $(SWIFT_FLAGS)
# The runner of the older test framework would report that it found no tests.
TESTING := --disable-xctest

.PHONY: help
help: ## Lists all targets
	@awk -F ':[^#]*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# $(call build_bridge,FLAGS): builds the bridge, if that is possible.
define build_bridge
if pkg-config --exists libmosquitto; then \
	swift build $(1) --product notify-bridge; \
else \
	echo "libmosquitto is not installed, so notify-bridge is skipped."; \
fi
endef

# 'yes' takes what has been built before as it is: several targets one after another would each look for changes. Only
# what is given to make counts, since a variable of this name in the environment would keep 'make build' from building.
BUILT :=

.PHONY: build bus-launcher
ifeq ($(BUILT),yes)
build bus-launcher: ;
else
bus-launcher: swift-needs
	@swift build $(DEBUG) --product bus-launcher

build: build-needs ## Builds the commands, the C library and their manual pages, optimized, in .build/release
	@[[ $(LIBRARIES) != static ]] || Scripts/build/static-libraries $(call quote,$(STATIC))
	@$(FIND_STATIC); \
	[[ ! -e $$static/whole ]] || export NOTIFYBUS_FLAGS="$$NOTIFYBUS_FLAGS static"; \
	swift build $(RELEASE) $(RELEASE_LINK) $(WITHOUT_PROC) $(PROGRAM) --product notify-commands
	@swift build $(RELEASE) $(LIBRARY_LINK) $(WITHOUT_PROC) -Xlinker -soname=libnotifybus.so.0 --product notifybus
	@$(call build_bridge,$(RELEASE) $(LIBRARY_LINK) $(WITHOUT_PROC) $(PROGRAM))
	@cd $(call quote,$(SCRATCH)/release) && for command in $(COMMANDS); do ln -sfn notify-commands "$$command"; done
	@Scripts/build/manuals $(call quote,$(SCRATCH)/release) $(call quote,$(SCRATCH))
endif

# What Scripts/build/manuals makes. The commands themselves report their options.
MANPAGES := $(filter-out man/notify-bridge.8,$(patsubst %.in,%,$(wildcard man/*.[1-9].in man/*.[1-9])))
COMPLETIONS := $(foreach command,$(COMMANDS),completions/bash/$(command) completions/zsh/_$(command) \
	completions/fish/$(command).fish)

.PHONY: manuals
manuals: build ## Makes the manual pages in .build/man and as documents in Documentation/man, the completions in .build/completions
	@/usr/bin/python3 Scripts/documents/markdown.py Documentation/man $(call quote,$(SCRATCH))/man/*.[1-9]
	@cd $(call quote,$(SCRATCH)) && ls $(MANPAGES) $(COMPLETIONS)

.PHONY: docs
docs: docs-needs build ## Makes the documentation, as a website in .build/docs
	@Scripts/documents/docs $(call quote,$(SCRATCH)) $(SWIFT_FLAGS)

include Scripts/build/install.mk

.PHONY: demo
demo: demo-build ## Demonstrates the commands on a private bus
	@$(PLAY_DEMO)

# The quickest to compile: modules as a whole, neither optimized nor with debug information.
QUICK_BUILD := -c release -Xswiftc -Onone -Xswiftc -gnone
DEMO := $(SCRATCH)/demo
DEMO_BUILD := $(QUICK_BUILD) --scratch-path $(call quote,$(DEMO)) $(SWIFT_FLAGS)

PLAY_DEMO = Scripts/documents/demo $(call quote,$(DEMO)/commands) $(MAKE) demo-bridge

.PHONY: demo-build demo-bridge
demo-build: run-needs
	@swift build $(DEMO_BUILD) --product notify-commands
	@mkdir -p $(call quote,$(DEMO)/commands) && cd $(call quote,$(DEMO)/commands) && \
	for command in $(COMMANDS); do ln -sfn ../release/notify-commands "$$command"; done && ln -sfn ../release/notify-bridge .

demo-bridge:
	@$(call build_bridge,$(DEMO_BUILD))

.PHONY: demo-picture
demo-picture: demo-build ## Draws the README's picture from the demo's output
	@$(PLAY_DEMO) >$(SCRATCH)/demo.txt
	@Scripts/documents/draw-demo.py 'Ask and wait for the answer, with no race' <$(SCRATCH)/demo.txt >Documentation/demo.svg

.PHONY: test
test: test-needs ## Runs all tests but the bridge's; what depends on the bus on both daemons
	@Scripts/check/run-tests $(call quote,$(SCRATCH)/test.log) \
	  "$$(grep -rhE '@Test\b' --include='*.swift' --exclude-dir=BridgeTests --exclude-dir=TraitTests Tests | wc -l)" \
	  swift test $(DEBUG) $(TESTING) --skip '^BridgeTests[.]'

# Debian sid, and what is built in it. A folder that has a Debian sid already will do: make sid-test SID=/srv/sid
SID ?= $(SCRATCH)/sid
SID_BUILD ?= $(SCRATCH)/sid-build
ARM64 ?= $(SID)-arm64

.PHONY: sid-test
sid-test: ## Runs all tests in Debian sid, with Debian's Swift, which is the oldest supported, and today's daemons; needs root
	@Scripts/build/install-dependencies sid
	@Scripts/check/sid $(call quote,$(SID)) $(call quote,$(SID_BUILD)) make test INSTALL_MISSING=no

# Only 'make sid-test' and 'make sid-deb' compile the tests there. This takes half a minute, and finds what an older Swift
# can't parse.
PARSE_TESTS := find Tests -name "*.swift" -not -path "*/.build/*" -print0 | xargs -0 -n 1 -P 4 swiftc -frontend -parse -enable-bare-slash-regex

.PHONY: sid-build
sid-build: ## Builds the commands and libraries in Debian sid with Debian's Swift, which is the oldest supported, and runs the demo; needs root
	@Scripts/build/install-dependencies sid
	@Scripts/check/sid $(call quote,$(SID)) $(call quote,$(SID_BUILD)) \
	  bash -euc 'swift --version; $(PARSE_TESTS); for what in --product=notifybus --target=notify; do swift build $(QUICK_BUILD) --scratch-path .build/demo $$what; done; make demo INSTALL_MISSING=no'

# With DEB_BUILD_OPTIONS=nocheck without the tests, as elsewhere in Debian.
.PHONY: sid-deb
sid-deb: ## Builds the Debian packages in Debian sid, runs the tests there, installs, upgrades and purges; needs root
	@Scripts/build/install-dependencies sid
	@Scripts/check/sid $(call quote,$(SID)) $(call quote,$(SID_BUILD)) \
	  env DEB_BUILD_OPTIONS=$(call quote,$(DEB_BUILD_OPTIONS)) bash -euc 'make deb INSTALL_MISSING=no; Scripts/check/deb --here .build/packages/out'

.PHONY: arm64-test
arm64-test: ## Builds for arm64 in Debian sid, and runs the tests that don't measure time, emulated; needs root, and an hour
	@Scripts/build/install-dependencies sid arm64
	@Scripts/check/arm64 $(call quote,$(SID)) $(call quote,$(ARM64)) $(call quote,$(SID_BUILD))

# A Debian 12 that has nothing but what the toolchain needs.
BARE ?= $(SCRATCH)/bare

.PHONY: bare-test
bare-test: swift-needs ## Runs the demo and the tests without a terminal on a machine that has only a toolchain; needs root
	@Scripts/build/install-dependencies sid
	@Scripts/check/bare $(call quote,$(BARE))

# How often.
TIMES ?= 1

.PHONY: elsewhere-test
elsewhere-test: test-needs ## Runs the tests in unusual surroundings: odd paths, another locale, no network; needs root
	@TIMES=$(TIMES) Scripts/check/elsewhere

# Of the lifecycle tests, only those in which this process observes. Everything takes ten times as long, so storms are
# smaller, and few tests run at once.
SANITIZED := --filter '^(NotifyBusTests|LifecycleTests\.(GateTests|AgentDeathTests)|NotifyTests\.(TokenTests|CallbackTests|PipeTests|FileTests|StateTests|ConcurrencyTests))[./]' \
	--experimental-maximum-parallelization-width 4

# Not optimized: once the optimizer has put parts of Swift's library into ours, the sanitizer sees an array being read
# and written, but not the count of references by which the writer knows that it is the only owner.
sanitize: export NOTIFYBUS_FLAGS := $(filter-out development,$(NOTIFYBUS_FLAGS))

# C programs with the C library, compiled with the sanitizer too, so that they also fail on leaks.
ADDRESS_SANITIZED := --filter '^NotifyTests\.(CProgramTests|EndingTests|ForkTests)[./]'

.PHONY: sanitize
sanitize: test-needs ## Runs the library's tests under the thread and address sanitizers
	@NOTIFYBUS_STORM=2000 TSAN_OPTIONS=suppressions=Tests/Support/thread-sanitizer.txt swift test --scratch-path .build-thread --sanitize=thread $(SWIFT_FLAGS) $(TESTING) $(SANITIZED)
	@swift test --scratch-path .build-address --sanitize=address $(SWIFT_FLAGS) $(TESTING) $(ADDRESS_SANITIZED)

# How long to run, and how long a stream of messages is in bytes.
FUZZ_SECONDS ?= 60
FUZZ_LENGTH ?= 4096
# The seed of the random messages; 0 for another one each time.
FUZZ_SEED ?= 0

FUZZ_BUILD := --scratch-path .build-fuzz -c release --sanitize=fuzzer -Xswiftc -DFUZZING $(SWIFT_FLAGS)

.PHONY: fuzz
fuzz: fuzz-messages fuzz-agent ## Feeds random messages, calls and answers, a minute each; FUZZ_SECONDS=3600 for an hour

.PHONY: fuzz-messages
fuzz-messages: test-needs
	@swift build $(FUZZ_BUILD) --product fuzz-messages
	@mkdir -p .build-fuzz/corpus
	@tar -xJf Tests/Fuzzing/corpus.tar.xz -C .build-fuzz/corpus
	@.build-fuzz/release/fuzz-messages -seed=$(FUZZ_SEED) -max_total_time=$(FUZZ_SECONDS) -max_len=$(FUZZ_LENGTH) -timeout=120 \
		-rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 -artifact_prefix=.build-fuzz/ \
		.build-fuzz/corpus Tests/Fuzzing/Corpus

# Swift's own report of a trap would replace libFuzzer's, and the input would be lost. In threads that take no signals it
# is lost anyway, so it is kept before each attempt.
.PHONY: fuzz-agent
fuzz-agent: test-needs
	@swift build $(FUZZ_BUILD) --product fuzz-agent
	@mkdir -p .build-fuzz/agent-corpus
	@rm -f .build-fuzz/crash-current
	@SWIFT_BACKTRACE=enable=no FUZZ_CURRENT=.build-fuzz/current .build-fuzz/release/fuzz-agent -seed=$(FUZZ_SEED) \
		-max_total_time=$(FUZZ_SECONDS) -max_len=2048 -len_control=0 -timeout=120 -rss_limit_mb=1024 -verbosity=0 \
		-print_final_stats=1 -artifact_prefix=.build-fuzz/ .build-fuzz/agent-corpus Tests/Fuzzing/AgentCorpus || \
		{ cp .build-fuzz/current .build-fuzz/crash-current; \
		  echo "The input is in .build-fuzz/crash-current: see CONTRIBUTING.md."; exit 1; }

.PHONY: linkage
linkage: build ## Checks that nothing pulls in Foundation
	@Scripts/check/linkage $(call quote,$(SCRATCH)) $(ONCE) $(SWIFT_FLAGS)

.PHONY: interface
interface: interface-needs build ## Checks that the public interfaces in Swift and C and of the commands have lost nothing
	@RECORD=$(RECORD) Scripts/check/interface $(call quote,$(SCRATCH)) $(SWIFT_FLAGS)

# 'no' leaves out the programs that use other packages too, which have to be fetched and compiled.
OTHERS := yes

.PHONY: dependents
dependents: test-needs ## Checks that packages can depend on this one by version; OTHERS=no fetches no other packages
	@OTHERS=$(OTHERS) Scripts/check/dependents $(call quote,$(SCRATCH)) $(SWIFT_FLAGS)

# 'no' leaves out what needs Hummingbird, which takes most of the time.
SERVER := yes

.PHONY: traits-test
traits-test: test-needs ## Tests what the traits add, and the example server; fetches other packages. SERVER=no leaves out the server
	@Scripts/build/install-dependencies examples
	@SERVER=$(SERVER) Scripts/check/traits $(call quote,$(SCRATCH)) $(SWIFT_FLAGS)

.PHONY: specs
specs: specs-needs build ## Checks the packaging files for Fedora, Arch and Nix, as far as possible here
	@Scripts/check/specs $(call quote,$(SCRATCH))

# The version to release, and the checks that must pass first.
CHECKS ?= .ci/run

.PHONY: release
release: ## Makes a release, by default of the version in the sources: make release VERSION=1.2.3
	@Scripts/build/install-dependencies bindings
	@Scripts/build/release $(call quote,$(VERSION)) $(call quote,$(CHECKS)) $(call quote,$(SCRATCH)/release-$(VERSION))

.PHONY: release-test
release-test: swift-needs ## Makes releases of a clone, with the checks mocked
	@Scripts/build/install-dependencies bindings
	@Scripts/check/release

.PHONY: reproducible
reproducible: deb-needs ## Builds the last commit twice, in two folders, and compares the results byte for byte
	@Scripts/check/reproducible

# In which desktops: x11, sway, gnome, plasma. The last two need hundreds of packages.
DESKTOPS ?= x11 sway

.PHONY: session-test
session-test: session-needs build bus-launcher ## Runs whole desktop sessions, in X and sway; also in others: DESKTOPS='gnome plasma'
	@Scripts/session/test $(call quote,$(SCRATCH)) $(foreach desktop,$(DESKTOPS),$(call quote,$(desktop)))

.PHONY: flatpak-test
flatpak-test: run-needs build ## Checks what applications hear in a real Flatpak, which it makes and installs in a folder
	@Scripts/build/install-dependencies flatpak
	@Scripts/check/flatpak $(call quote,$(SCRATCH))

.PHONY: policy
policy: test-needs build bus-launcher ## Checks the system bus policy with two users; needs root
	@Scripts/check/policy $(call quote,$(SCRATCH))

.PHONY: fairness
fairness: test-needs build bus-launcher ## Measures what one user's flood of calls does to another's; needs root
	@Scripts/check/fairness $(call quote,$(SCRATCH))

# Which parts to measure, of those in 'Benchmarks/bench --help'; all if empty.
BENCH ?=
# How many bridges share a broker in the part 'bridges'; the benchmark's own number if empty.
BRIDGES ?=

.PHONY: bench
bench: bench-build ## Runs the benchmarks, in ten minutes; some parts: make bench BENCH='latency storm'
	@Benchmarks/bench --commands $(call quote,$(SCRATCH)/release) $(BRIDGES:%=--bridges %) $(BENCH)

.PHONY: bench-check
bench-check: bench-build ## Checks in seconds that the benchmarks work
	@Benchmarks/bench --check --commands $(call quote,$(SCRATCH)/release) $(BENCH)

.PHONY: bench-build
bench-build: bench-needs build
	@swift build $(RELEASE) --product bus-launcher
	@library=$$(realpath -- $(call quote,$(SCRATCH)/release/libnotifybus.so)); \
	$(MAKE) -C Benchmarks/Peers OUT=../.build/peers LIBRARY="$$library"
	@$(FIND_STATIC); \
	Scripts/build/swift-beside Benchmarks $(call quote,$(SCRATCH)) build $(OPTIMIZED) $(RELEASE_LINK) --product bench-notifybus

.PHONY: bridge-test
bridge-test: bridge-needs ## Tests notify-bridge between two buses and a Mosquitto, on loopback
	@swift test $(DEBUG) $(TESTING) --filter '^BridgeTests[.]'

# How many clients.
CLIENTS ?= 10000

.PHONY: bridge-scale
bridge-scale: bridge-needs build ## Posts to 10,000 plain MQTT clients of one Mosquitto, on loopback: CLIENTS=N
	@Tests/Bridge/BridgeTests/crowd $(call quote,$(SCRATCH)/release) $(CLIENTS)

# Which cases, if not all: those whose file or title contains this. With LONG=yes also 100 restarts of the bus.
CASES ?=
LONG ?=

.PHONY: bindings-test
bindings-test: run-needs bus-launcher ## Runs the conformance suite with Swift, C, Python and Node on both daemons; CASES=TEXT runs some, LONG=yes also what takes long
	@Scripts/build/install-dependencies bindings
	@for product in notify-commands notifybus conformance-swift; do swift build $(DEBUG) --product $$product; done
	@Bindings/conformance/run --build $(call quote,$(SCRATCH)/debug) --only $(call quote,$(CASES)) $(if $(LONG),--long)
	@Bindings/conformance/check-packages

.PHONY: examples-test
examples-test: run-needs build ## Runs the examples on a private bus
	@Scripts/build/install-dependencies examples
	@Examples/check-examples $(call quote,$(SCRATCH)/release) $(QUICK_BUILD)

.PHONY: examples-build
examples-build: swift-needs
	@Scripts/build/install-dependencies build examples
	@Examples/check-examples --build $(call quote,$(SCRATCH)) $(QUICK_BUILD)

# How many histories to run, and the first seed; or a single seed, whose history is printed if it fails.
COUNT ?= 1000000
FIRST ?= 1
SEED ?=

.PHONY: simulate
simulate: build-needs ## Simulates a million histories of the lifecycle protocol; COUNT=N FIRST=SEED, or SEED=N for one
	@swift build $(RELEASE) --product simulate
	@$(call quote,$(SCRATCH)/release/simulate) $(if $(SEED),--seed $(SEED),--count $(COUNT) --first $(FIRST))

.PHONY: simulate-all
simulate-all: build-needs ## Explores every history of the lifecycle protocol at small scopes; QUICK=1 takes less than a minute, SCOPE=NAME is one, MUTATIONS=1 breaks each promise
	@swift build $(RELEASE) --product simulate
	@$(call quote,$(SCRATCH)/release/simulate) $(if $(SCOPE),--scope $(call quote,$(SCOPE)),$(if $(QUICK),--quick,--all)) $(if $(MUTATIONS),--mutations)

# How long, on which daemons, and what may happen to the programs: see ACTS and WORLD in Tests/Chaos/plan.py; all if empty.
SECONDS ?= 60
DAEMON ?= dbus-daemon dbus-broker
ROUND ?= 1
ACTS ?=
WITHOUT ?=

.PHONY: chaos
chaos: test-needs ## Judges real programs on real buses by what the documents promise, while everything happens to them; SECONDS=N SEED=N DAEMON=NAME
	@Tests/Chaos/breaks.py --check
	@for product in notify-commands notifybus bus-launcher chaos-witness; do swift build $(DEBUG) --product $$product; done
	@for daemon in $(DAEMON); do \
	  Tests/Chaos/chaos.py --build $(call quote,$(SCRATCH)/debug) --daemon $$daemon --seconds $(SECONDS) \
	    --seed $(call quote,$(or $(SEED),1)) --only $(call quote,$(ACTS)) --without $(call quote,$(WITHOUT)) \
	    --round $(ROUND) || exit 1; \
	done

.PHONY: chaos-breaks
chaos-breaks: test-needs ## Breaks promises in a copy of the sources, one at a time, and checks that 'make chaos' finds each; ONLY=NAME DAEMON=NAME
	@Tests/Chaos/breaks.py --only $(call quote,$(ONLY)) --daemon $(call quote,$(DAEMON)) --seed $(call quote,$(or $(SEED),1))

# Which of them to make, if not all: those whose file, line or text contains ONLY; so many as DRAW, BY something that moves.
ONLY ?=
DRAW ?=
BY ?=

.PHONY: mutants
mutants: COUNT := 500
mutants: test-needs ## Changes single lines of the agent's and the observer's decisions, and checks that each is noticed; COUNT=N SEED=S, ONLY=TEXT
	@Scripts/check/mutants.py --count $(COUNT) --seed $(call quote,$(or $(SEED),1)) $(if $(ONLY),--only $(call quote,$(ONLY))) \
	  $(if $(DRAW),--draw $(DRAW) --by $(call quote,$(BY)))

.PHONY: lint
lint: swift-needs ## Checks the formatting of the sources; C with clang-format and the scripts with shellcheck, if installed; and that the list of known mutants is current
	@swift format lint --strict --parallel --recursive $(SWIFT_SOURCES)
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); else echo "shellcheck is not installed, so the scripts are not checked."; fi
	@if command -v clang-format >/dev/null; then clang-format --dry-run --Werror $(C_SOURCES); else echo "clang-format is not installed, so C is not checked."; fi
	@Scripts/check/mutants.py --list >/dev/null

.PHONY: folders
folders: build-needs ## Checks which folder of NotifyCore uses which, and how many files need each other
	@swift build $(DEBUG) --target NotifyCore
	@Scripts/check/folders.py $(call quote,$(SCRATCH))

.PHONY: format
format: swift-needs ## Formats the sources; C if clang-format is installed
	@swift format --in-place --parallel --recursive $(SWIFT_SOURCES)
	@! command -v clang-format >/dev/null || clang-format -i $(C_SOURCES)

.PHONY: clean
clean: ## Removes everything that was built
	@rm -rf .build .build-address .build-chaos .build-fuzz .build-mutants .build-thread Benchmarks/.build

# Installs what each job needs if it is missing.
.PHONY: specs-needs swift-needs build-needs docs-needs interface-needs run-needs test-needs session-needs bench-needs bridge-needs
swift-needs:
	@Scripts/build/check-swift
build-needs: swift-needs
	@Scripts/build/install-dependencies build
docs-needs: swift-needs
	@Scripts/build/install-dependencies build docs
interface-needs: swift-needs
	@Scripts/build/install-dependencies build interface
run-needs: swift-needs
	@Scripts/build/install-dependencies build run
test-needs: swift-needs
	@Scripts/build/install-dependencies build run test
specs-needs: swift-needs
	@Scripts/build/install-dependencies build specs
session-needs: swift-needs
	@Scripts/build/install-dependencies build run session $(filter gnome plasma,$(DESKTOPS))
bench-needs: swift-needs
	@Scripts/build/install-dependencies build run test bench
bridge-needs: swift-needs
	@Scripts/build/install-dependencies build run test bridge
