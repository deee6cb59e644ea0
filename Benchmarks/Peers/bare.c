// SPDX-License-Identifier: Apache-2.0
//
// The floor: what the bus and the kernel take, whatever library is used. It sends bytes that were prepared before, as many
// at once as it may, and of what it receives it reads nothing but the lengths. libdbus only connects.
//
// It also fills a bus with match rules ('each'): for the interfaces INTERFACE.n0, INTERFACE.n1, …, or, if INTERFACE is the
// beginning of an object path, for paths, as dbus-broker's own benchmark of messages has them. Its steps are also those of
// that benchmark: a broadcast and a signal to itself in one write, until the latter is back.

#include "peer.h"

#include <dbus/dbus.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "/org/notifybus"
#define MEMBER "Posted"

static DBusConnection *connection;
static const char *interface;
static const char *observed;
static int bus;

/* The signal of the name that was posted last, the one to itself, and what waits to be written. */
static char posted[1024];
static char *signal_bytes, *own_bytes;
static int signal_length, own_length;
static char unwritten[1 << 16];
static int unwritten_length;

void peer_connect(const char *address, const char *wanted) {
        DBusError error = DBUS_ERROR_INIT;
        interface = wanted;
        connection = dbus_connection_open_private(address, &error);
        if (!connection || !dbus_bus_register(connection, &error))
                fail("libdbus: %s", error.message);
}

/* From here on the socket is used without libdbus, and waits. What the bus says at the beginning is read before. */
static void take_socket(void) {
        char *id = dbus_bus_get_id(connection, NULL);
        dbus_free(id);
        while (dbus_connection_dispatch(connection) == DBUS_DISPATCH_DATA_REMAINS) {}
        if (!dbus_connection_get_unix_fd(connection, &bus) || fcntl(bus, F_SETFL, 0) < 0)
                fail("The connection has no socket.");
}

void peer_observe(char *const *names, int count, bool each) {
        DBusError error = DBUS_ERROR_INIT;
        char rule[2048];
        // Without an error to set, libdbus waits for no answer.
        for (int i = 0; each && i < count; i++) {
                snprintf(rule, sizeof(rule), interface[0] == '/' ? "path='%s%d'" :
                         "type='signal',path='" PATH "',member='" MEMBER "',interface='%s.n%d'", interface, i);
                dbus_bus_add_match(connection, rule, NULL);
        }
        if (each)
                return take_socket();
        if (count != 1)
                fail("This observes one name.");
        observed = names[0];
        snprintf(rule, sizeof(rule), "type='signal',path='%s',interface='%s',member='%s'", PATH, interface, MEMBER);
        dbus_bus_add_match(connection, rule, &error);
        if (dbus_error_is_set(&error))
                fail("libdbus: %s", error.message);
        take_socket();
}

void peer_cancel(void) {
        fail("This doesn't cancel.");
}

/* The length of a message, from its first 16 bytes; 0 if there are fewer. See the D-Bus Specification, "Message Format". */
static size_t message_length(const char *bytes, size_t count) {
        uint32_t body, fields;
        if (count < 16)
                return 0;
        memcpy(&body, bytes + 4, 4);
        memcpy(&fields, bytes + 12, 4);
        return 16 + ((size_t)fields + 7) / 8 * 8 + body;
}

void peer_loop(void) {
        static char bytes[1 << 16];
        size_t count = 0;
        for (;;) {
                ssize_t more = read(bus, bytes + count, sizeof(bytes) - count);
                if (more <= 0)
                        exit(0);
                count += (size_t)more;
                size_t used = 0, length;
                while ((length = message_length(bytes + used, count - used)) && length <= count - used) {
                        used += length;
                        delivered(observed);
                }
                count -= used;
                memmove(bytes, bytes + used, count);
        }
}

static void marshal(const char *name, const char *destination, char **bytes, int *length) {
        DBusMessage *signal = dbus_message_new_signal(PATH, interface, MEMBER);
        if (!signal || !dbus_message_append_args(signal, DBUS_TYPE_STRING, &name, DBUS_TYPE_INVALID) ||
            !dbus_message_set_destination(signal, destination))
                fail("libdbus: out of memory");
        dbus_message_set_serial(signal, 1000);
        free(*bytes);
        if (!dbus_message_marshal(signal, bytes, length))
                fail("libdbus: out of memory");
        dbus_message_unref(signal);
}

static void prepare(const char *name) {
        marshal(name, NULL, &signal_bytes, &signal_length);
        marshal(name, dbus_bus_get_unique_name(connection), &own_bytes, &own_length);
        snprintf(posted, sizeof(posted), "%s", name);
        if (!bus)
                take_socket();
}

static void append(const char *bytes, int length) {
        if (unwritten_length + length > (int)sizeof(unwritten))
                peer_flush();
        memcpy(unwritten + unwritten_length, bytes, (size_t)length);
        unwritten_length += length;
}

void peer_post(const char *name) {
        if (strcmp(name, posted) != 0)
                prepare(name);
        append(signal_bytes, signal_length);
}

void peer_flush(void) {
        for (int written = 0; written < unwritten_length;) {
                ssize_t more = write(bus, unwritten + written, (size_t)(unwritten_length - written));
                if (more < 0)
                        fail("The bus has disconnected this.");
                written += (int)more;
        }
        unwritten_length = 0;
}

void peer_sync(void) {
        char bytes[4096];
        append(own_bytes, own_length);
        peer_flush();
        // Nothing else comes, since a poster has no rules.
        for (size_t count = 0, length; !(length = message_length(bytes, count)) || length > count;) {
                ssize_t more = read(bus, bytes + count, sizeof(bytes) - count);
                if (more <= 0)
                        fail("The bus has disconnected this.");
                count += (size_t)more;
        }
}
