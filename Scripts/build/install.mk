# SPDX-License-Identifier: Apache-2.0
#
# Installing: where files go, and how. Part of the Makefile.

# DESTDIR is put before every path, for packagers. SYSTEM=no installs into the user's home, without root, and leaves out
# what serves the system bus.
DESTDIR ?=
SYSTEM ?= yes
ifeq ($(SYSTEM),no)
PREFIX ?= $(HOME)/.local
endif
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
LIBEXECDIR ?= $(PREFIX)/libexec
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
METAINFODIR ?= $(DATADIR)/metainfo
KWINSCRIPTSDIR ?= $(DATADIR)/kwin/scripts
BASHCOMPLETIONSDIR ?= $(DATADIR)/bash-completion/completions
ZSHCOMPLETIONSDIR ?= $(DATADIR)/zsh/site-functions
FISHCOMPLETIONSDIR ?= $(DATADIR)/fish/vendor_completions.d
# Empty for packages that have the texts elsewhere.
LICENSEDIR ?= $(DATADIR)/licenses/notifybus
EXAMPLESDIR ?= $(DATADIR)/doc/notifybus/examples
# The bus, systemd and the desktop search their own folders, whatever our prefix is. This looks them up on demand:
# folder PACKAGE,VARIABLE,DEFAULT
folder = $(or $(shell pkg-config --variable=$(1) $(2) 2>/dev/null),$(3))
ifeq ($(SYSTEM),no)
DBUSDIR ?= $(DATADIR)/dbus-1
SYSTEMDUSERUNITDIR ?= $(DATADIR)/systemd/user
AUTOSTARTDIR ?= $(HOME)/.config/autostart
endif
DBUSDIR ?= $(call folder,datadir,dbus-1,/usr/share)/dbus-1
SYSTEMDUSERUNITDIR ?= $(call folder,systemduserunitdir,systemd,/usr/lib/systemd/user)
# Debian still says /lib here, which is the same as /usr/lib.
SYSTEMDSYSTEMUNITDIR ?= $(patsubst /lib/%,/usr/lib/%,$(call folder,systemdsystemunitdir,systemd,/lib/systemd/system))
AUTOSTARTDIR ?= /etc/xdg/autostart
# How notify-launch.service is enabled: by links beside the units, for those who install by hand. Packages do it as
# their distribution does: 'preset' installs a preset, 'no' nothing.
ENABLE ?= links
# Records what 'make install' has installed, for 'make uninstall'. Packages have their own lists and leave it empty.
MANIFEST ?= $(DATADIR)/notifybus/installed

VERSION = $(shell sed -n 's/.*notifyBusVersion = "\(.*\)"/\1/p' Sources/Commands/CommandSupport/Version.swift)
INSTALL_VARIABLES := SYSTEM SCRATCH COMMANDS MANPAGES COMPLETIONS BINDIR LIBDIR LIBEXECDIR INCLUDEDIR MANDIR PKGCONFIGDIR \
	METAINFODIR KWINSCRIPTSDIR BASHCOMPLETIONSDIR ZSHCOMPLETIONSDIR FISHCOMPLETIONSDIR DBUSDIR SYSTEMDUSERUNITDIR \
	SYSTEMDSYSTEMUNITDIR AUTOSTARTDIR LICENSEDIR EXAMPLESDIR ENABLE
# To pkgconf, as to Debian and Fedora, 1.0.0~beta.1 is older than 1.0.0, and 1.0.0-beta.1 is not.
PKGVERSION = $(subst -,~,$(VERSION))
TEMPLATE_VALUES = $(foreach v,BINDIR LIBDIR INCLUDEDIR VERSION PKGVERSION,$(call quote,$(v)=$($(v))))
INSTALL_PLAN = $(foreach v,$(INSTALL_VARIABLES),$(v)=$(call quote,$($(v)))) Scripts/build/install-plan

.PHONY: install
install: ## Installs what 'make build' has built, below PREFIX and where the bus and systemd look
	@plan=$$($(INSTALL_PLAN)); \
	DESTDIR=$(call quote,$(DESTDIR)) Scripts/build/install-tree install $(call quote,$(MANIFEST)) $(TEMPLATE_VALUES) <<<"$$plan"
	@$(if $(DESTDIR),,echo "Installed. It takes effect at your next login; Documentation/installing.md says how to start at once."; \
	[[ :$$PATH: == *:$(call quote,$(BINDIR)):* ]] || echo "$(BINDIR) is not in your PATH, so the commands are not found by name.")

.PHONY: uninstall
uninstall: ## Removes exactly what install has installed
	@DESTDIR=$(call quote,$(DESTDIR)) Scripts/build/install-tree uninstall $(call quote,$(MANIFEST))

.PHONY: install-list
install-list: ## Lists what install would install, and where
	@$(INSTALL_PLAN) | cut -f 3 | sort

.PHONY: install-test
install-test: test-needs build bus-launcher ## Installs into a folder, and checks that the bus starts the agent from there
	@Scripts/check/install $(call quote,$(SCRATCH))

# A source package, and packages that are built from it, with the distribution's shared libraries.
PACKAGES = $(SCRATCH)/packages
.PHONY: deb
deb: deb-needs ## Makes Debian packages, in .build/packages/out
	@Scripts/build/debian-packages $(call quote,$(PACKAGES)/out)

.PHONY: deb-test
deb-test: ## Installs, uses, upgrades, removes and purges the packages in a copy of this system; needs root
	@Scripts/build/install-dependencies outside
	@Scripts/check/deb $(call quote,$(PACKAGES)/out)

.PHONY: desktop
desktop: desktop-needs build ## Checks units, desktop files and metadata with the tools made for them
	@Scripts/check/desktop $(call quote,$(SCRATCH))

.PHONY: deb-needs desktop-needs
deb-needs: swift-needs
	@Scripts/build/install-dependencies build deb
desktop-needs: swift-needs
	@Scripts/build/install-dependencies build desktop
