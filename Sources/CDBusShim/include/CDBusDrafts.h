/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are written: with arguments of any type, and as the bytes that go to the bus. Nothing here blocks. */
#ifndef NOTIFYBUS_CDBUSDRAFTS_H
#define NOTIFYBUS_CDBUSDRAFTS_H

#include "CDBusShim.h"

#pragma clang assume_nonnull begin

/* A message that is written, and a place in its arguments. Types are the characters of the D-Bus type codes. */
typedef struct nb_draft nb_draft;
typedef struct nb_writer {
    uint64_t libdbus[12];
} nb_writer;

/* nb_draft_call(), nb_draft_signal(), nb_draft_reply(), nb_draft_error() - begin a message; NULL if it is not valid */
nb_draft *_Nullable nb_draft_call(const char *destination, const char *path, const char *interface, const char *member);
nb_draft *_Nullable nb_draft_signal(const char *_Nullable destination, const char *path, const char *interface,
                                    const char *member);
nb_draft *_Nullable nb_draft_reply(const char *destination, uint32_t reply_serial);
nb_draft *_Nullable nb_draft_error(const char *destination, uint32_t reply_serial, const char *name);

/* nb_draft_without_reply() - say that no answer is wanted */
void nb_draft_without_reply(nb_draft *draft);

/* nb_draft_without_activation() - say that nobody is to be started for it */
void nb_draft_without_activation(nb_draft *draft);

/* nb_write_message() - go to where the first argument is written */
void nb_write_message(nb_draft *draft, nb_writer *writer);

/*
 * nb_write_*() - write a value; false when memory ran out or the value is not valid
 *
 * A descriptor is written as its place among the descriptors of the message, the first one first; they are to be sent
 * along with the bytes.
 */
bool nb_write_number(nb_writer *writer, char type, uint64_t value);
bool nb_write_double(nb_writer *writer, double value);
bool nb_write_string(nb_writer *writer, char type, const char *value);
bool nb_write_descriptor(nb_writer *writer, int descriptor);

/* nb_write_enter(), nb_write_leave() - write an array, structure, dictionary entry or variant around what comes next */
bool nb_write_enter(nb_writer *writer, char type, const char *_Nullable signature, nb_writer *inside);
bool nb_write_leave(nb_writer *writer, nb_writer *inside);

/*
 * nb_draft_bytes() - give a message as it is to be written to the socket, and free the draft
 * @serial: the number that an answer will name
 * @ret_bytes: the bytes; free with nb_free()
 *
 * Return: how many bytes; 0 when the message is not valid or memory ran out.
 */
size_t nb_draft_bytes(nb_draft *draft, uint32_t serial, uint8_t *_Nullable *_Nonnull ret_bytes);

/* nb_discard() - free a message that is not sent */
void nb_discard(nb_draft *draft);

#pragma clang assume_nonnull end

#endif
