// SPDX-License-Identifier: Apache-2.0

#include "raw.h"
#include "peer.h"

#include <dbus/dbus.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static DBusConnection *connection;

void raw_connect(const char *address) {
    DBusError error = DBUS_ERROR_INIT;
    connection = dbus_connection_open_private(address, &error);
    if (!connection || !dbus_bus_register(connection, &error)) fail("libdbus: %s", error.message);
}

void raw_add_rule(const char *rule, bool waits) {
    DBusError error = DBUS_ERROR_INIT;
    // Without an error to set, libdbus waits for no answer.
    dbus_bus_add_match(connection, rule, waits ? &error : NULL);
    if (dbus_error_is_set(&error)) fail("libdbus: %s", error.message);
}

int raw_observe(const char *interface) {
    char rule[2048];
    snprintf(rule, sizeof(rule), "type='signal',path='" RAW_PATH "',interface='%s',member='" RAW_MEMBER "'", interface);
    raw_add_rule(rule, true);
    return raw_socket();
}

const char *raw_unique_name(void) { return dbus_bus_get_unique_name(connection); }

void raw_signal(const char *interface, const char *name, const char *destination, char **bytes, int *length) {
    DBusMessage *signal = dbus_message_new_signal(RAW_PATH, interface, RAW_MEMBER);
    if (!signal || !dbus_message_append_args(signal, DBUS_TYPE_STRING, &name, DBUS_TYPE_INVALID) ||
        !dbus_message_set_destination(signal, destination))
        fail("libdbus: out of memory");
    dbus_message_set_serial(signal, 1000);
    free(*bytes);
    if (!dbus_message_marshal(signal, bytes, length)) fail("libdbus: out of memory");
    dbus_message_unref(signal);
}

int raw_socket(void) {
    int bus;
    dbus_free(dbus_bus_get_id(connection, NULL));
    while (dbus_connection_dispatch(connection) == DBUS_DISPATCH_DATA_REMAINS) {}
    if (!dbus_connection_get_unix_fd(connection, &bus) || fcntl(bus, F_SETFL, 0) < 0)
        fail("The connection has no socket.");
    return bus;
}
