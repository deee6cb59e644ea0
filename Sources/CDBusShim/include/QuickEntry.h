/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enters a bus in one round trip less: says all that it can before the bus answers. BEGIN waits for the answers, because
 * xdg-dbus-proxy takes whatever the bus says after it for messages. Whatever else a bus answers, or an address says, is
 * left to libdbus. See the D-Bus specification, "Authentication Protocol".
 *
 * A quick entry must be used from one thread at a time.
 */
#ifndef NOTIFYBUS_QUICKENTRY_H
#define NOTIFYBUS_QUICKENTRY_H

#include <stddef.h>

#include "CDBusShim.h"

#pragma clang assume_nonnull begin

/* What the bus has answered. Begins with zeros. */
typedef struct nb_quick {
    char text[128];
    size_t length;
    int lines;
    /* The GUID that the address asks for, or an empty text; and that of the bus, once it has let us in. */
    char expected_guid[33];
    char guid[33];
} nb_quick;

/*
 * nb_quick_enter() - connect to the bus at a D-Bus address, and begin to authenticate. Calls connect(2) without waiting.
 *
 * Return: the socket, which doesn't block, is closed on exec and owned by the caller; -1 if libdbus has to do it, or to
 * say why it can't be done.
 */
int nb_quick_enter(nb_quick *quick, const char *address);

/*
 * nb_quick_read() - read what the bus answers, and nothing beyond, and say BEGIN, without blocking
 *
 * Return: NB_REFUSED if libdbus has to enter instead, on another socket.
 */
nb_entry_state nb_quick_read(nb_quick *quick, int fd);

#pragma clang assume_nonnull end

#endif
