/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with arguments of any type, for the lifecycle agent and those who talk to it: read one that nb_next() gave,
 * write one and send it. Nothing here blocks.
 */
#ifndef NOTIFYBUS_CDBUSVALUES_H
#define NOTIFYBUS_CDBUSVALUES_H

#include "CDBusShim.h"

#pragma clang assume_nonnull begin

/* A place in the arguments of a message that is read. Types are the characters of the D-Bus type codes. */
typedef struct nb_reader {
    uint64_t libdbus[12];
} nb_reader;

/* nb_read_message() - go to the first argument of the message that nb_next() gave last; false if there is none */
bool nb_read_message(nb_connection *connection, nb_reader *reader);

/* nb_read_type() - the type code here; 0 behind the last value */
char nb_read_type(nb_reader *reader);

/* nb_read_number() - the value of type y, b, n, q, i, u, x or t, its bits extended with zeros */
uint64_t nb_read_number(nb_reader *reader);

/* nb_read_double() - the value of type d */
double nb_read_double(nb_reader *reader);

/* nb_read_string() - the value of type s, o or g; valid as long as the message */
const char *nb_read_string(nb_reader *reader);

/* nb_read_descriptor() - the value of type h: a new descriptor, closed on exec, that the caller closes; -1 if none */
int nb_read_descriptor(nb_reader *reader);

/* nb_read_enter() - go inside the array, structure, dictionary entry or variant here */
void nb_read_enter(nb_reader *reader, nb_reader *inside);

/* nb_read_next() - go on to the next value; false if there is none */
bool nb_read_next(nb_reader *reader);

/* nb_read_element_signature() - the type of the elements of the array here; free with nb_free_string() */
char *_Nullable nb_read_element_signature(nb_reader *reader);

/* nb_free_string() */
void nb_free_string(char *_Nullable string);

/* A message that is written, and a place in its arguments. */
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

/* nb_write_*() - write a value; false when memory ran out or the value is not valid */
bool nb_write_number(nb_writer *writer, char type, uint64_t value);
bool nb_write_double(nb_writer *writer, double value);
bool nb_write_string(nb_writer *writer, char type, const char *value);
bool nb_write_descriptor(nb_writer *writer, int descriptor);

/* nb_write_enter(), nb_write_leave() - write an array, structure, dictionary entry or variant around what comes next */
bool nb_write_enter(nb_writer *writer, char type, const char *_Nullable signature, nb_writer *inside);
bool nb_write_leave(nb_writer *writer, nb_writer *inside);

/* nb_send() - send a message and free it; the serial, 0 when memory ran out */
uint32_t nb_send(nb_connection *connection, nb_draft *draft);

/* nb_discard() - free a message that is not sent */
void nb_discard(nb_draft *draft);

#pragma clang assume_nonnull end

#endif
