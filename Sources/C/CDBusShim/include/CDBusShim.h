/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of libdbus that NotifyBus uses, as a few calls that Swift can import: no variadic functions, no macros with
 * casts, no callbacks. libdbus finds the bus, authenticates, and validates messages; once the bus has authenticated us,
 * the socket is ours. Nothing here blocks, with one exception: nb_enter() waits for connect(2).
 *
 * The caller must use an entry from one thread at a time.
 */
#ifndef NOTIFYBUS_CDBUSSHIM_H
#define NOTIFYBUS_CDBUSSHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/* A connection that the bus has yet to authenticate: libdbus's connection and its watches. */
typedef struct nb_entry nb_entry;

/* What went wrong, as libdbus reports it. */
typedef struct nb_error {
    char name[128];
    char message[384];
} nb_error;

/* How far it has come. */
typedef enum nb_entry_state {
    NB_ENTERING = 0, /* neither of these */
    NB_LET_IN,       /* the bus has authenticated us; call nb_take_socket() */
    NB_REFUSED       /* the bus has closed the connection */
} nb_entry_state;

/*
 * nb_enter() - connect to the bus at a D-Bus address, and begin to authenticate
 * @address: as in the D-Bus specification, "Server Addresses"; may be a list, separated by ';'
 * @milliseconds: how long a Unix socket may take: connect(2) waits while so many others wait to be accepted that there is
 *   no more room, and libdbus gives it no limit
 * @error: set if NULL is returned; its name is NB_TIMED_OUT if the time has passed
 *
 * Sending Hello, with which every connection begins, is left to the caller.
 */
nb_entry *_Nullable nb_enter(const char *address, int milliseconds, nb_error *error);
#define NB_TIMED_OUT "org.freedesktop.DBus.Error.Timeout"

/* nb_give_up() - close the connection and free the entry */
void nb_give_up(nb_entry *entry);

/* nb_entry_fd() - the socket, owned by libdbus, or -1 if the connection is gone */
int nb_entry_fd(const nb_entry *entry);

/* nb_entry_events() - what to poll(2) the socket for: POLLIN and POLLOUT */
short nb_entry_events(const nb_entry *entry);

/* nb_entry_service() - read and write as much as possible without blocking; `revents` comes from poll(2) */
nb_entry_state nb_entry_service(nb_entry *entry, short revents);

/*
 * nb_take_socket() - take the socket of an authenticated entry, and free the entry
 * @guid: its message is set to the bus's GUID
 *
 * libdbus has not read any message yet: the first is the reply to Hello.
 *
 * Return: the socket, closed on exec and owned by the caller; -1, with errno set, if no descriptor is available. The
 * entry then remains valid.
 */
int nb_take_socket(nb_entry *entry, nb_error *guid);

/*
 * nb_connect() - connect to the bus without libdbus, to authenticate differently
 * @address: the alternatives in it are tried in order, up to the first that is no Unix socket with a path or an abstract name
 * @guid: its message is set to the GUID that the bus must have, if the address says so
 *
 * Return: the socket, which does not block, closed on exec and owned by the caller; -1, with errno set, if nothing
 * listens there, or EAGAIN if so many wait to be accepted that there is no more room.
 */
int nb_connect(const char *address, nb_error *guid);

/*
 * nb_is_message() - whether the bytes are exactly one message that the D-Bus specification allows
 *
 * A message whose header announces descriptors counts as invalid, because there are none.
 */
bool nb_is_message(const void *bytes, size_t length);

#pragma clang assume_nonnull end

#endif
