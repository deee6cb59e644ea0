# SPDX-License-Identifier: Apache-2.0
#
# Installing: where things go, and how. Part of the Makefile.

# DESTDIR stands before every path, for those who make packages. SYSTEM=no installs for the one user whose home this is,
# without root: what serves the system bus is left out.
DESTDIR ?=
SYSTEM ?= yes
ifeq ($(SYSTEM),no)
PREFIX ?= $(HOME)/.local
endif
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
METAINFODIR ?= $(DATADIR)/metainfo
KWINSCRIPTSDIR ?= $(DATADIR)/kwin/scripts
BASHCOMPLETIONSDIR ?= $(DATADIR)/bash-completion/completions
ZSHCOMPLETIONSDIR ?= $(DATADIR)/zsh/site-functions
FISHCOMPLETIONSDIR ?= $(DATADIR)/fish/vendor_completions.d
# Set to nothing by packages that have the texts elsewhere.
LICENSEDIR ?= $(DATADIR)/licenses/notifybus
# The bus, systemd and the desktop look into their own folders, whatever our prefix is. These ask for them when they are
# needed: folder PACKAGE,VARIABLE,DEFAULT
folder = $(or $(shell pkg-config --variable=$(1) $(2) 2>/dev/null),$(3))
ifeq ($(SYSTEM),no)
DBUSDIR ?= $(DATADIR)/dbus-1
SYSTEMDUSERUNITDIR ?= $(DATADIR)/systemd/user
AUTOSTARTDIR ?= $(HOME)/.config/autostart
endif
DBUSDIR ?= $(call folder,datadir,dbus-1,/usr/share)/dbus-1
SYSTEMDUSERUNITDIR ?= $(call folder,systemduserunitdir,systemd,/usr/lib/systemd/user)
# Debian still writes /lib here, which is /usr/lib by another name.
SYSTEMDSYSTEMUNITDIR ?= $(patsubst /lib/%,/usr/lib/%,$(call folder,systemdsystemunitdir,systemd,/lib/systemd/system))
AUTOSTARTDIR ?= /etc/xdg/autostart
# What 'make install' has put where, for 'make uninstall'. Packages have their own lists: they set it to nothing.
MANIFEST ?= $(DATADIR)/notifybus/installed

VERSION = $(shell sed -n 's/.*notifyBusVersion = "\(.*\)"/\1/p' Sources/CommandSupport/Version.swift)
INSTALL_VARIABLES := SYSTEM SCRATCH COMMANDS MANPAGES COMPLETIONS BINDIR LIBDIR INCLUDEDIR MANDIR PKGCONFIGDIR \
	METAINFODIR KWINSCRIPTSDIR BASHCOMPLETIONSDIR ZSHCOMPLETIONSDIR FISHCOMPLETIONSDIR DBUSDIR SYSTEMDUSERUNITDIR \
	SYSTEMDSYSTEMUNITDIR AUTOSTARTDIR LICENSEDIR
TEMPLATE_VALUES = $(foreach v,BINDIR LIBDIR INCLUDEDIR VERSION,$(call quote,$(v)=$($(v))))
INSTALL_PLAN = $(foreach v,$(INSTALL_VARIABLES),$(v)=$(call quote,$($(v)))) Scripts/install-plan

.PHONY: install
install: ## Installs what 'make build' has built: below PREFIX, and where the bus and systemd look
	@plan=$$($(INSTALL_PLAN)); \
	DESTDIR=$(call quote,$(DESTDIR)) Scripts/install-tree install $(call quote,$(MANIFEST)) $(TEMPLATE_VALUES) <<<"$$plan"
	@$(if $(DESTDIR),,echo "Installed. It serves from your next login on; Documentation/installing.md says how to begin at once.")

.PHONY: uninstall
uninstall: ## Removes what install has installed, and nothing else
	@DESTDIR=$(call quote,$(DESTDIR)) Scripts/install-tree uninstall $(call quote,$(MANIFEST))

.PHONY: install-list
install-list: ## Says what install would install, and where to
	@$(INSTALL_PLAN) | cut -f 3 | sort

.PHONY: install-test
install-test: test-needs build ## Installs into a folder, and sees the bus start the agent from there
	@swift build $(DEBUG) --product broker-cradle
	@Scripts/check-install $(call quote,$(SCRATCH))

# A source package, and packages that are built from it, with the distribution's shared libraries.
PACKAGES = $(SCRATCH)/packages
.PHONY: deb
deb: deb-needs ## Makes Debian packages, in .build/packages/out
	@Scripts/make-deb $(call quote,$(PACKAGES)/out)

.PHONY: deb-test
deb-test: ## Installs, uses, upgrades, removes and purges the packages, in a copy of this system; as root
	@Scripts/check-deb $(call quote,$(PACKAGES)/out)

.PHONY: desktop
desktop: desktop-needs build ## Checks units, metadata and the like with the tools of those who read them
	@Scripts/check-desktop $(call quote,$(SCRATCH))

.PHONY: deb-needs desktop-needs
deb-needs: swift-needs
	@Scripts/install-dependencies build deb
desktop-needs: swift-needs
	@Scripts/install-dependencies build desktop
