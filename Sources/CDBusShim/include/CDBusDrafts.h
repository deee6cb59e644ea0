/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing messages: arguments of any type, and the bytes that go to the bus. Nothing here blocks. */
#ifndef NOTIFYBUS_CDBUSDRAFTS_H
#define NOTIFYBUS_CDBUSDRAFTS_H

#include "CDBusShim.h"

#pragma clang assume_nonnull begin

/* A message being written, and a position in its arguments. Types are D-Bus type codes, as characters. */
typedef struct nb_draft nb_draft;
typedef struct nb_writer {
    uint64_t libdbus[12];
} nb_writer;

/* nb_draft_call(), nb_draft_signal(), nb_draft_reply(), nb_draft_error() - begin a message; NULL if it is invalid */
nb_draft *_Nullable nb_draft_call(const char *destination, const char *path, const char *interface, const char *member);
nb_draft *_Nullable nb_draft_signal(const char *_Nullable destination, const char *path, const char *interface,
                                    const char *member);
nb_draft *_Nullable nb_draft_reply(const char *destination, uint32_t reply_serial);
nb_draft *_Nullable nb_draft_error(const char *destination, uint32_t reply_serial, const char *name);

/* nb_draft_without_reply() - ask for no reply */
void nb_draft_without_reply(nb_draft *draft);

/* nb_draft_without_activation() - do not start a program for it */
void nb_draft_without_activation(nb_draft *draft);

/* nb_write_message() - move to the position of the first argument */
void nb_write_message(nb_draft *draft, nb_writer *writer);

/*
 * nb_write_*() - write a value; false if out of memory or if the value is invalid
 *
 * A descriptor is written as its index in the message's descriptors, which are sent along with the bytes.
 */
bool nb_write_number(nb_writer *writer, char type, uint64_t value);
bool nb_write_double(nb_writer *writer, double value);
bool nb_write_string(nb_writer *writer, char type, const char *value);
bool nb_write_descriptor(nb_writer *writer, int descriptor);

/* nb_write_enter(), nb_write_leave() - write an array, structure, dictionary entry or variant around what comes next */
bool nb_write_enter(nb_writer *writer, char type, const char *_Nullable signature, nb_writer *inside);
bool nb_write_leave(nb_writer *writer, nb_writer *inside);

/*
 * nb_draft_bytes() - encode a message for the socket, and free the draft
 * @serial: the serial that a reply will refer to
 * @ret_bytes: the bytes; free with nb_free()
 *
 * Return: the number of bytes; 0 if the message is invalid or out of memory.
 */
size_t nb_draft_bytes(nb_draft *draft, uint32_t serial, uint8_t *_Nullable *_Nonnull ret_bytes);

/* nb_discard() - free a message without sending it */
void nb_discard(nb_draft *draft);

#pragma clang assume_nonnull end

#endif
