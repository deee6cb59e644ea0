// SPDX-License-Identifier: Apache-2.0

/// An environment without a desktop, system bus or settings, whatever this machine has.
public let withoutDesktop: [String: String?] = [
    "DISPLAY": nil, "WAYLAND_DISPLAY": nil, "XDG_SESSION_TYPE": nil, "XAUTHORITY": nil, "SWAYSOCK": nil,
    "XDG_CURRENT_DESKTOP": nil, "XDG_CONFIG_HOME": "/nonexistent", "XDG_CONFIG_DIRS": "/nonexistent",
    "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/system_bus_socket",
]
