/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of libdbus that NotifyBus uses, as a dozen calls that Swift can import: no variadic functions, no macros
 * with casts, no callbacks. libdbus gets us into the bus, and knows what a message is; it never has the socket of a
 * connection that the bus has let in. Nothing here ever blocks, with one exception: nb_enter() makes the connect(2)
 * call.
 *
 * An entry or a draft is used by one thread at a time; the caller sees to that.
 */
#ifndef NOTIFYBUS_CDBUSSHIM_H
#define NOTIFYBUS_CDBUSSHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/* A connection to a bus that has yet to let us in: libdbus' connection and its watches. */
typedef struct nb_entry nb_entry;

/* What went wrong, in libdbus' words. */
typedef struct nb_error {
    char name[128];
    char message[384];
} nb_error;

/* How far it has come. */
typedef enum nb_entry_state {
    NB_ENTERING = 0, /* neither of these */
    NB_LET_IN,       /* the bus has authenticated us; nb_take_socket() is to be called */
    NB_REFUSED       /* the bus has closed the connection */
} nb_entry_state;

/*
 * nb_enter() - connect to the bus at a D-Bus address, to be authenticated there
 * @address: as in the D-Bus specification, "Server Addresses"; several may stand there, separated by ';'
 * @error: filled when NULL is returned
 *
 * The bus knows nobody before Hello, which is left to the caller.
 */
nb_entry *_Nullable nb_enter(const char *address, nb_error *error);

/* nb_give_up() - close the connection and free the entry */
void nb_give_up(nb_entry *entry);

/* nb_entry_fd() - the socket, or -1 when the connection is gone; it stays libdbus' property */
int nb_entry_fd(const nb_entry *entry);

/* nb_entry_events() - what to poll(2) the socket for: POLLIN and POLLOUT */
short nb_entry_events(const nb_entry *entry);

/* nb_entry_service() - read and write what the socket takes now, without waiting; `revents` is what poll(2) said */
nb_entry_state nb_entry_service(nb_entry *entry, short revents);

/*
 * nb_take_socket() - take the socket of an entry that was let in, and free the entry
 * @guid: its message becomes the bus's GUID
 *
 * libdbus has read nothing yet of what the bus says, since that begins with the answer to Hello.
 *
 * Return: the socket, closed on exec, which is the caller's; -1, with errno, if there is no descriptor to be had. Then
 * the entry is still there.
 */
int nb_take_socket(nb_entry *entry, nb_error *guid);

/*
 * nb_is_message() - whether these bytes are one whole message, valid by the D-Bus specification
 *
 * A message whose header says that descriptors came with it counts as invalid, since none are here.
 */
bool nb_is_message(const void *bytes, size_t length);

/* nb_free() - free what nb_draft_bytes() gave */
void nb_free(uint8_t *_Nullable bytes);

#pragma clang assume_nonnull end

#endif
