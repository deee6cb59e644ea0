/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of libdbus that NotifyBus uses, as a dozen calls that Swift can import: no variadic functions, no macros
 * with casts, no callbacks. Nothing here ever blocks, with one exception: nb_open() makes the connect(2) call.
 *
 * A connection is used by one thread at a time; the caller sees to that.
 */
#ifndef NOTIFYBUS_CDBUSSHIM_H
#define NOTIFYBUS_CDBUSSHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/* A private connection to a bus: libdbus' connection, its watches, and the message that is being looked at. */
typedef struct nb_connection nb_connection;

/* What went wrong, in libdbus' words. */
typedef struct nb_error {
    char name[128];
    char message[384];
} nb_error;

/* What nb_next() found. */
typedef enum nb_kind {
    NB_NOTHING = 0,  /* no whole message has arrived */
    NB_SIGNAL,       /* a signal; `string` is set if its signature is exactly "s" */
    NB_REPLY,        /* a method return; `string` or `number` is set if that is its only argument */
    NB_ERROR,        /* an error reply; `error_name`, and `string` if it carries a text */
    NB_CALL,         /* a method call; answer it with nb_refuse() or nb_make_refusal() */
    NB_DISCONNECTED  /* the connection is gone; nothing else will come */
} nb_kind;

/* A message. All pointers are valid until the next call on the same connection. */
typedef struct nb_message {
    nb_kind kind;
    uint32_t reply_serial; /* NB_REPLY, NB_ERROR: which call this answers */
    uint32_t number;       /* NB_REPLY: the argument, if the signature is "u" */
    uint32_t serial;       /* of the message itself; what an answer to NB_CALL must name */
    bool wants_reply;      /* NB_CALL */
    const char *_Nullable path;
    const char *_Nullable interface;
    const char *_Nullable member;
    const char *_Nullable sender;
    const char *_Nullable error_name;
    const char *_Nullable string;
    size_t string_length;
} nb_message;

/*
 * nb_open() - connect to the bus at a D-Bus address and queue the Hello call
 * @address: as in the D-Bus specification, "Server Addresses"; several may stand there, separated by ';'
 * @error: filled when NULL is returned
 *
 * The answer to Hello is reported by nb_next() as the reply to serial nb_hello_serial().
 */
nb_connection *_Nullable nb_open(const char *address, nb_error *error);

/* nb_close() - close the connection and free it */
void nb_close(nb_connection *connection);

/* nb_hello_serial() - the serial of the Hello call that nb_open() queued */
uint32_t nb_hello_serial(const nb_connection *connection);

/* nb_fd() - the socket, or -1 when the connection is gone; it stays libdbus' property */
int nb_fd(const nb_connection *connection);

/* nb_events() - what to poll(2) the socket for: POLLIN and POLLOUT */
short nb_events(const nb_connection *connection);

/* nb_service() - read and write what the socket takes now, without waiting; `revents` is what poll(2) said */
void nb_service(nb_connection *connection, short revents);

/* nb_next() - take the next message that has arrived, if any */
nb_kind nb_next(nb_connection *connection, nb_message *message);

/*
 * nb_hand_over() - from when the bus has let us in, leave reading the socket to the caller
 *
 * To be called after each nb_service(), or never. Once it has returned true, libdbus only writes: the caller reads
 * everything that the bus says, from the answer to Hello on, cuts it into messages, and gives those that it does not
 * understand itself to nb_take(). Descriptors that are passed along with messages cannot be had this way.
 */
bool nb_hand_over(nb_connection *connection);

/*
 * nb_take() - look at a whole message that the caller has read, as nb_next() looks at one that libdbus has read
 *
 * Return: NB_NOTHING if these bytes are no valid message.
 */
nb_kind nb_take(nb_connection *connection, const void *bytes, size_t length, nb_message *message);

/*
 * nb_call_bus() - call a method of the bus itself (org.freedesktop.DBus) without waiting for the answer
 * @member: "AddMatch", "RemoveMatch", "GetConnectionUnixUser", "GetId"
 * @argument: the only argument, a string; NULL for none
 *
 * Return: the serial that the answer will name, 0 when out of memory.
 */
uint32_t nb_call_bus(nb_connection *connection, const char *member, const char *_Nullable argument);

/* nb_refuse() - answer the NB_CALL that nb_next() gave last with UnknownMethod, through libdbus' own queue */
void nb_refuse(nb_connection *connection);

/*
 * The three makers below give a whole message as bytes, ready to be written to a bus connection's socket.
 * Return: the number of bytes, and the bytes in `ret_bytes` (free with nb_free()); 0 when the arguments are not
 * valid on the wire or memory ran out.
 */

/* nb_make_signal() - a broadcast signal whose only argument is `string` */
size_t nb_make_signal(const char *path, const char *interface, const char *member, const char *string,
                      uint32_t serial, uint8_t *_Nullable *_Nonnull ret_bytes);

/* nb_make_bus_call() - a call of a method of the bus; @argument: the only argument, a string, or NULL for none */
size_t nb_make_bus_call(const char *member, const char *_Nullable argument, uint32_t serial,
                        uint8_t *_Nullable *_Nonnull ret_bytes);

/* nb_make_refusal() - the UnknownMethod answer to the NB_CALL that nb_next() gave last on this connection */
size_t nb_make_refusal(nb_connection *connection, uint32_t serial, uint8_t *_Nullable *_Nonnull ret_bytes);

/* nb_free() - free what a maker gave */
void nb_free(uint8_t *_Nullable bytes);

#pragma clang assume_nonnull end

#endif
