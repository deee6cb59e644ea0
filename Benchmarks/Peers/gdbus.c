// SPDX-License-Identifier: Apache-2.0
//
// The peer on GDBus: g_dbus_connection_signal_subscribe(), g_dbus_connection_emit_signal() and a GMainLoop.

#include "peer.h"

#include <gio/gio.h>

#define PATH "/org/notifybus"
#define MEMBER "Posted"

static GDBusConnection *connection;
static const char *interface;
static guint last_subscription;

static void check(gboolean ok, GError *error) {
    if (!ok) fail("GDBus: %s", error ? error->message : "failed");
}

static void on_signal(GDBusConnection *from, const char *sender, const char *path, const char *in, const char *signal,
                      GVariant *parameters, gpointer data) {
    (void)from, (void)sender, (void)path, (void)in, (void)signal, (void)data;
    const char *name;
    g_variant_get(parameters, "(&s)", &name);
    delivered(name);
}

void peer_connect(const char *address, const char *wanted) {
    GError *error = NULL;
    interface = wanted;
    GDBusConnectionFlags flags =
        G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION;
    connection = g_dbus_connection_new_for_address_sync(address, flags, NULL, NULL, &error);
    check(connection != NULL, error);
}

static void subscribe(const char *arg0) {
    last_subscription = g_dbus_connection_signal_subscribe(connection, NULL, interface, MEMBER, PATH, arg0,
                                                           G_DBUS_SIGNAL_FLAGS_NONE, on_signal, NULL, NULL);
}

void peer_observe(char *const *names, int count, bool each) {
    for (int i = 0; each && i < count; i++) subscribe(names[i]);
    if (!each) subscribe(NULL);
    // Subscribing does not wait for the bus; a round trip does.
    peer_sync();
}

void peer_cancel(void) {
    g_dbus_connection_signal_unsubscribe(connection, last_subscription);
    // The main context still has to handle the end of the subscription.
    while (g_main_context_iteration(NULL, FALSE)) {}
}

void peer_loop(void) { g_main_loop_run(g_main_loop_new(NULL, FALSE)); }

void peer_post(const char *name) {
    GError *error = NULL;
    GVariant *body = g_variant_new("(s)", name);
    check(g_dbus_connection_emit_signal(connection, NULL, PATH, interface, MEMBER, body, &error), error);
}

void peer_flush(void) {
    GError *error = NULL;
    check(g_dbus_connection_flush_sync(connection, NULL, &error), error);
}

void peer_sync(void) {
    GError *error = NULL;
    GVariant *reply =
        g_dbus_connection_call_sync(connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                    "GetId", NULL, NULL, G_DBUS_CALL_FLAGS_NONE, 120000, NULL, &error);
    check(reply != NULL, error);
    g_variant_unref(reply);
}
