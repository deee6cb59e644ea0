// SPDX-License-Identifier: Apache-2.0
//
// The floor: what the bus and the kernel take, whatever library is used. It sends bytes that were prepared before, as many
// at once as it may, and of what it receives it reads nothing but the lengths. libdbus only connects.
//
// It also fills a bus with match rules ('each'): for the interfaces INTERFACE.n0, INTERFACE.n1, …, or, if INTERFACE is the
// beginning of an object path, for paths, as dbus-broker's own benchmark of messages has them. Its steps are also those of
// that benchmark: a broadcast and a signal to itself in one write, until the latter is back.

#include "peer.h"
#include "raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    interface = wanted;
    raw_connect(address);
}

void peer_observe(char *const *names, int count, bool each) {
    for (int i = 0; each && i < count; i++) {
        char rule[2048];
        snprintf(rule, sizeof(rule),
                 interface[0] == '/' ? "path='%s%d'"
                                     : "type='signal',path='" RAW_PATH "',member='" RAW_MEMBER "',interface='%s.n%d'",
                 interface, i);
        raw_add_rule(rule, false);
    }
    if (!each && count != 1) fail("This observes one name.");
    observed = names[0];
    bus = each ? raw_socket() : raw_observe(interface);
}

void peer_cancel(void) { fail("This doesn't cancel."); }

/* The length of a message, from its first 16 bytes; 0 if there are fewer. See the D-Bus Specification, "Message Format". */
static size_t message_length(const char *bytes, size_t count) {
    uint32_t body, fields;
    if (count < 16) return 0;
    memcpy(&body, bytes + 4, 4);
    memcpy(&fields, bytes + 12, 4);
    return 16 + ((size_t)fields + 7) / 8 * 8 + body;
}

void peer_loop(void) {
    static char bytes[1 << 16];
    size_t count = 0;
    for (;;) {
        ssize_t more = read(bus, bytes + count, sizeof(bytes) - count);
        if (more <= 0) exit(0);
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

static void prepare(const char *name) {
    raw_signal(interface, name, NULL, &signal_bytes, &signal_length);
    raw_signal(interface, name, raw_unique_name(), &own_bytes, &own_length);
    snprintf(posted, sizeof(posted), "%s", name);
    if (!bus) bus = raw_socket();
}

static void append(const char *bytes, int length) {
    if (unwritten_length + length > (int)sizeof(unwritten)) peer_flush();
    memcpy(unwritten + unwritten_length, bytes, (size_t)length);
    unwritten_length += length;
}

void peer_post(const char *name) {
    if (strcmp(name, posted) != 0) prepare(name);
    append(signal_bytes, signal_length);
}

void peer_flush(void) {
    for (int written = 0; written < unwritten_length;) {
        ssize_t more = write(bus, unwritten + written, (size_t)(unwritten_length - written));
        if (more < 0) fail("The bus has disconnected this.");
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
        if (more <= 0) fail("The bus has disconnected this.");
        count += (size_t)more;
    }
}
