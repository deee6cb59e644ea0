// SPDX-License-Identifier: Apache-2.0
//
// The peer on sd-bus: sd_bus_match_signal(), sd_bus_emit_signal(), and the loop of sd_bus_process(3).

#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define PATH "/org/notifybus"
#define MEMBER "Posted"

static sd_bus *bus;
static const char *interface;
static sd_bus_slot *last_slot;

static int check(int result) {
    if (result < 0) fail("sd-bus: %s", strerror(-result));
    return result;
}

static int handler(sd_bus_message *message, void *data, sd_bus_error *error) {
    (void)data, (void)error;
    const char *name;
    if (sd_bus_message_read(message, "s", &name) >= 0) delivered(name);
    return 0;
}

void peer_connect(const char *address, const char *wanted) {
    const char *name;
    interface = wanted;
    check(sd_bus_new(&bus));
    check(sd_bus_set_address(bus, address));
    check(sd_bus_set_bus_client(bus, true));
    check(sd_bus_start(bus));
    check(sd_bus_get_unique_name(bus, &name));
}

void peer_observe(char *const *names, int count, bool each) {
    for (int i = 0; each && i < count; i++) {
        char rule[2048];
        snprintf(rule, sizeof(rule), "type='signal',path='%s',interface='%s',member='%s',arg0='%s'", PATH, interface,
                 MEMBER, names[i]);
        check(sd_bus_add_match(bus, &last_slot, rule, handler, NULL));
    }
    if (!each) check(sd_bus_match_signal(bus, &last_slot, NULL, PATH, interface, MEMBER, handler, NULL));
}

void peer_cancel(void) { last_slot = sd_bus_slot_unref(last_slot); }

void peer_loop(void) {
    for (;;)
        if (check(sd_bus_process(bus, NULL)) == 0) check(sd_bus_wait(bus, UINT64_MAX));
}

void peer_post(const char *name) {
    int result = sd_bus_emit_signal(bus, PATH, interface, MEMBER, "s", name);
    if (result == -ENOBUFS) { // Its queue has a limit.
        check(sd_bus_flush(bus));
        result = sd_bus_emit_signal(bus, PATH, interface, MEMBER, "s", name);
    }
    check(result);
}

void peer_flush(void) { check(sd_bus_flush(bus)); }

void peer_sync(void) {
    check(sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId",
                             NULL, NULL, ""));
}
