// SPDX-License-Identifier: Apache-2.0
//
// The peer on libdbus: a filter and dbus_connection_read_write_dispatch().

#include "peer.h"

#include <dbus/dbus.h>
#include <stdio.h>
#include <string.h>

#define PATH "/org/notifybus"
#define MEMBER "Posted"

static DBusConnection *connection;
static const char *interface;
static char rule[2048];

static DBusHandlerResult filter(DBusConnection *from, DBusMessage *message, void *data) {
    (void)from, (void)data;
    const char *name;
    if (!dbus_message_is_signal(message, interface, MEMBER) ||
        !dbus_message_get_args(message, NULL, DBUS_TYPE_STRING, &name, DBUS_TYPE_INVALID))
        return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
    delivered(name);
    return DBUS_HANDLER_RESULT_HANDLED;
}

void peer_connect(const char *address, const char *wanted) {
    DBusError error = DBUS_ERROR_INIT;
    interface = wanted;
    connection = dbus_connection_open_private(address, &error);
    if (!connection || !dbus_bus_register(connection, &error)) fail("libdbus: %s", error.message);
    dbus_connection_set_exit_on_disconnect(connection, TRUE);
    dbus_connection_add_filter(connection, filter, NULL, NULL);
}

static void add_match(void) {
    DBusError error = DBUS_ERROR_INIT;
    dbus_bus_add_match(connection, rule, &error);
    if (dbus_error_is_set(&error)) fail("libdbus: %s", error.message);
}

void peer_observe(char *const *names, int count, bool each) {
    int length =
        snprintf(rule, sizeof(rule), "type='signal',path='%s',interface='%s',member='%s'", PATH, interface, MEMBER);
    for (int i = 0; each && i < count; i++) {
        snprintf(rule + length, sizeof(rule) - (size_t)length, ",arg0='%s'", names[i]);
        add_match();
    }
    if (!each) add_match();
}

void peer_cancel(void) { dbus_bus_remove_match(connection, rule, NULL); }

void peer_loop(void) {
    while (dbus_connection_read_write_dispatch(connection, -1)) {}
}

void peer_post(const char *name) {
    DBusMessage *signal = dbus_message_new_signal(PATH, interface, MEMBER);
    if (!signal || !dbus_message_append_args(signal, DBUS_TYPE_STRING, &name, DBUS_TYPE_INVALID) ||
        !dbus_connection_send(connection, signal, NULL))
        fail("libdbus: out of memory");
    dbus_message_unref(signal);
}

void peer_flush(void) { dbus_connection_flush(connection); }

void peer_sync(void) {
    DBusMessage *call = dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, "GetId");
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage *reply = dbus_connection_send_with_reply_and_block(connection, call, 120000, &error);
    if (!reply) fail("libdbus: %s", error.message);
    dbus_message_unref(reply);
    dbus_message_unref(call);
}
