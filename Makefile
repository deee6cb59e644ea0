# SPDX-License-Identifier: Apache-2.0
#
# The way in. 'make' alone says what there is.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
# One installation and one build at a time, also with -j.
.NOTPARALLEL:

# Where things are built, and further flags for every build: make test SWIFT_FLAGS='-Xswiftc -warnings-as-errors'
SCRATCH ?= .build
SWIFT_FLAGS ?=

COMMANDS := notify-post notify-wait notify-lifecycle notify-agent
SWIFT_SOURCES := Package.swift Snippets Sources Tests
SCRIPTS := Scripts/check-linkage Scripts/check-policy Scripts/check-swift Scripts/demo Scripts/docs Scripts/install-dependencies Scripts/manuals Scripts/static-libraries .ci/run

# Commands carry the Swift library in them, and where they can everything else as well: 'notify-post --version' takes
# 1.2 ms so, 1.6 ms when only the C library is shared, and 4.5 ms when the dynamic linker has to find and relocate the
# toolchain's libraries first (2 cores; /bin/true takes 0.7 ms). A program that stands alone may not look for libraries.
RELEASE := -c release --static-swift-stdlib --disable-local-rpath --scratch-path $(SCRATCH) $(SWIFT_FLAGS)
# They carry libdbus and the C++ library as well, where the system has them as archives: see Scripts/static-libraries.
STATIC := $(SCRATCH)/static
RELEASE_LINK := -Xswiftc -L$(abspath $(STATIC)) -Xlinker -s -Xlinker --gc-sections -Xlinker --as-needed
# The library for C is a guest in other programs: it shares libdbus and the C++ library with them.
LIBRARY_LINK := -Xlinker -s -Xlinker --gc-sections -Xlinker --as-needed
DEBUG := --scratch-path $(SCRATCH) $(SWIFT_FLAGS)
# The runner of the older test framework would add that it found nothing to run.
TESTING := --disable-xctest

.PHONY: help
help: ## Says what there is
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: build-needs ## Builds the commands and the library for C, optimized, into .build/release, and their manuals
	@Scripts/static-libraries $(STATIC)
	@export PKG_CONFIG_PATH="$(abspath $(STATIC))$${PKG_CONFIG_PATH:+:$$PKG_CONFIG_PATH}"; \
	[[ ! -e $(STATIC)/whole ]] || export NOTIFYBUS_STATIC=1; \
	for command in $(COMMANDS); do swift build $(RELEASE) $(RELEASE_LINK) --product $$command; done
	@swift build $(RELEASE) $(LIBRARY_LINK) --product notifybus
	@Scripts/manuals $(SCRATCH)/release $(SCRATCH)

# What Scripts/manuals makes: the commands themselves say what their options are.
MANPAGES := $(patsubst man/%,$(SCRATCH)/man/%,$(patsubst %.in,%,$(wildcard man/*.[1-9].in man/*.[1-9])))
COMPLETIONS := $(foreach command,$(COMMANDS),$(SCRATCH)/completions/bash/$(command) \
	$(SCRATCH)/completions/zsh/_$(command) $(SCRATCH)/completions/fish/$(command).fish)

.PHONY: manuals
manuals: build ## Makes the manual pages in .build/man, the completions in .build/completions
	@ls $(MANPAGES) $(COMPLETIONS)

.PHONY: docs
docs: build-needs ## Makes the documentation of the package, as a web site in .build/docs
	@Scripts/docs $(SCRATCH) $(SWIFT_FLAGS)

# Where things go. DESTDIR stands before all of it, for those who make packages.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
# The bus reads its policies from its own folder, whatever our prefix is.
DBUSDIR ?= $(or $(shell pkg-config --variable=datadir dbus-1 2>/dev/null),/usr/share)/dbus-1
INSTALLED = $(addprefix $(BINDIR)/,$(COMMANDS)) $(DBUSDIR)/interfaces/org.notifybus.Agent1.xml \
	$(DBUSDIR)/system.d/org.notifybus.conf

.PHONY: install
install: ## Installs what 'make build' has built below PREFIX, and the agent's interface and policy where D-Bus looks
	@for command in $(COMMANDS); do [[ -x $(SCRATCH)/release/$$command ]] || { \
		echo "There is no $$command yet; run 'make build' first, as yourself." >&2; exit 1; }; done
	@install -d $(addprefix $(DESTDIR),$(BINDIR) $(DBUSDIR)/interfaces $(DBUSDIR)/system.d)
	@install $(addprefix $(SCRATCH)/release/,$(COMMANDS)) $(DESTDIR)$(BINDIR)
	@install -m 644 Sources/NotifyAgent/Interface/org.notifybus.Agent1.xml $(DESTDIR)$(DBUSDIR)/interfaces
	@install -m 644 dbus-policy/org.notifybus.conf $(DESTDIR)$(DBUSDIR)/system.d

.PHONY: uninstall
uninstall: ## Removes what install has installed
	@rm -f $(addprefix $(DESTDIR),$(INSTALLED))

.PHONY: demo
demo: run-needs build ## Shows names travel between programs, on a bus of its own
	@Scripts/demo $(SCRATCH)/release

.PHONY: test
test: test-needs ## Checks every promise, on dbus-daemon and on dbus-broker
	@swift test $(DEBUG) $(TESTING)

# Of the lifecycle's tests those in which this process observes. The sanitizer has a thread of its own that never rests
# for long, so the count of context switches is left out.
SANITIZED := --filter '^(NotifyBusTests|LifecycleTests\.(GateTests|AgentDeathTests)|NotifyTests\.(TokenTests|PipeTests|FileTests|StateTests|ConcurrencyTests))[./]' \
	--skip 'makes.no.system.call'

.PHONY: sanitize
sanitize: test-needs ## Runs the library's tests under the thread sanitizer, in .build-thread
	@swift test --scratch-path .build-thread --sanitize=thread $(SWIFT_FLAGS) $(TESTING) $(SANITIZED)

.PHONY: linkage
linkage: build ## Checks that nothing brings Foundation along
	@Scripts/check-linkage $(SCRATCH) $(SWIFT_FLAGS)

.PHONY: policy
policy: test-needs build ## Checks the system bus policy with two users, as root
	@swift build $(DEBUG) --product broker-cradle
	@Scripts/check-policy $(SCRATCH)

.PHONY: lint
lint: swift-needs ## Checks the layout of the sources, and the scripts where shellcheck is installed
	@swift format lint --strict --parallel --recursive $(SWIFT_SOURCES)
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); else echo "shellcheck is not installed; the scripts go unchecked."; fi

.PHONY: format
format: swift-needs ## Lays out the sources as lint wants them
	@swift format --in-place --parallel --recursive $(SWIFT_SOURCES)

.PHONY: clean
clean: ## Removes everything that was built
	@rm -rf .build .build-thread

# What each job needs, installed where it is missing.
.PHONY: swift-needs build-needs run-needs test-needs
swift-needs:
	@Scripts/check-swift
build-needs: swift-needs
	@Scripts/install-dependencies build
run-needs: swift-needs
	@Scripts/install-dependencies build run
test-needs: swift-needs
	@Scripts/install-dependencies build run test
