/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the shim share. */
#ifndef NOTIFYBUS_CDBUSSHIM_INTERNAL_H
#define NOTIFYBUS_CDBUSSHIM_INTERNAL_H

#include "CDBusShim.h"

#include <dbus/dbus.h>

/* libdbus makes one watch for reading and one for writing a socket; there is never more than one pair a connection. */
enum { NB_MAX_WATCHES = 4 };

struct nb_connection {
    DBusConnection *bus;
    DBusWatch *watches[NB_MAX_WATCHES];
    DBusMessage *current; /* what nb_next() or nb_take() gave last; keeps its strings alive */
    uint32_t hello_serial;
    bool disconnected;
    bool is_handed_over; /* whether the caller reads the socket */
};

#endif
