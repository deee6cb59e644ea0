/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of CDBusValues.h over libdbus. */

#include "CDBusValues.h"

#include "internal.h"

_Static_assert(sizeof(nb_reader) >= sizeof(DBusMessageIter), "an iterator must fit into a reader");
_Static_assert(sizeof(nb_writer) >= sizeof(DBusMessageIter), "an iterator must fit into a writer");

/* The names of the shim over libdbus' own types; an nb_draft is a DBusMessage and nothing else. */
static DBusMessageIter *reading(nb_reader *reader) {
    return (DBusMessageIter *)(void *)reader;
}

static DBusMessageIter *writing(nb_writer *writer) {
    return (DBusMessageIter *)(void *)writer;
}

static DBusMessage *message_of(nb_draft *draft) {
    return (DBusMessage *)(void *)draft;
}

static nb_draft *draft_of(DBusMessage *message) {
    return (nb_draft *)(void *)message;
}

bool nb_read_message(nb_connection *connection, nb_reader *reader) {
    return connection->current != NULL && dbus_message_iter_init(connection->current, reading(reader));
}

char nb_read_type(nb_reader *reader) {
    return (char)dbus_message_iter_get_arg_type(reading(reader));
}

uint64_t nb_read_number(nb_reader *reader) {
    DBusBasicValue value = {.u64 = 0};
    dbus_message_iter_get_basic(reading(reader), &value);
    switch (nb_read_type(reader)) {
    case DBUS_TYPE_BYTE:
        return value.byt;
    case DBUS_TYPE_INT16:
    case DBUS_TYPE_UINT16:
        return value.u16;
    case DBUS_TYPE_BOOLEAN:
    case DBUS_TYPE_INT32:
    case DBUS_TYPE_UINT32:
        return value.u32;
    default:
        return value.u64;
    }
}

double nb_read_double(nb_reader *reader) {
    double value = 0;
    dbus_message_iter_get_basic(reading(reader), &value);
    return value;
}

const char *nb_read_string(nb_reader *reader) {
    const char *value = "";
    dbus_message_iter_get_basic(reading(reader), &value);
    return value;
}

int nb_read_descriptor(nb_reader *reader) {
    int value = -1;
    dbus_message_iter_get_basic(reading(reader), &value);
    return value;
}

void nb_read_enter(nb_reader *reader, nb_reader *inside) {
    dbus_message_iter_recurse(reading(reader), reading(inside));
}

bool nb_read_next(nb_reader *reader) {
    return dbus_message_iter_next(reading(reader));
}

char *nb_read_element_signature(nb_reader *reader) {
    DBusMessageIter inside;
    dbus_message_iter_recurse(reading(reader), &inside);
    return dbus_message_iter_get_signature(&inside);
}

void nb_free_string(char *string) {
    dbus_free(string);
}

nb_draft *nb_draft_call(const char *destination, const char *path, const char *interface, const char *member) {
    return draft_of(dbus_message_new_method_call(destination, path, interface, member));
}

nb_draft *nb_draft_signal(const char *destination, const char *path, const char *interface, const char *member) {
    DBusMessage *message = dbus_message_new_signal(path, interface, member);
    if (message != NULL && destination != NULL && !dbus_message_set_destination(message, destination)) {
        dbus_message_unref(message);
        return NULL;
    }
    return draft_of(message);
}

static DBusMessage *new_answer(int type, const char *destination, uint32_t reply_serial) {
    DBusMessage *message = dbus_message_new(type);
    if (message == NULL)
        return NULL;
    dbus_message_set_no_reply(message, TRUE);
    if (dbus_message_set_destination(message, destination) && dbus_message_set_reply_serial(message, reply_serial))
        return message;
    dbus_message_unref(message);
    return NULL;
}

nb_draft *nb_draft_reply(const char *destination, uint32_t reply_serial) {
    return draft_of(new_answer(DBUS_MESSAGE_TYPE_METHOD_RETURN, destination, reply_serial));
}

nb_draft *nb_draft_error(const char *destination, uint32_t reply_serial, const char *name) {
    DBusMessage *message = new_answer(DBUS_MESSAGE_TYPE_ERROR, destination, reply_serial);
    if (message != NULL && !dbus_message_set_error_name(message, name)) {
        dbus_message_unref(message);
        return NULL;
    }
    return draft_of(message);
}

void nb_draft_without_reply(nb_draft *draft) {
    dbus_message_set_no_reply(message_of(draft), TRUE);
}

void nb_draft_without_activation(nb_draft *draft) {
    dbus_message_set_auto_start(message_of(draft), FALSE);
}

void nb_write_message(nb_draft *draft, nb_writer *writer) {
    dbus_message_iter_init_append(message_of(draft), writing(writer));
}

bool nb_write_number(nb_writer *writer, char type, uint64_t number) {
    DBusBasicValue value = {.u64 = 0};
    switch (type) {
    case DBUS_TYPE_BYTE:
        value.byt = (unsigned char)number;
        break;
    case DBUS_TYPE_INT16:
    case DBUS_TYPE_UINT16:
        value.u16 = (dbus_uint16_t)number;
        break;
    case DBUS_TYPE_BOOLEAN:
        value.u32 = number != 0;
        break;
    case DBUS_TYPE_INT32:
    case DBUS_TYPE_UINT32:
        value.u32 = (dbus_uint32_t)number;
        break;
    default:
        value.u64 = number;
        break;
    }
    return dbus_message_iter_append_basic(writing(writer), type, &value);
}

bool nb_write_double(nb_writer *writer, double value) {
    return dbus_message_iter_append_basic(writing(writer), DBUS_TYPE_DOUBLE, &value);
}

bool nb_write_string(nb_writer *writer, char type, const char *value) {
    return dbus_message_iter_append_basic(writing(writer), type, &value);
}

bool nb_write_descriptor(nb_writer *writer, int descriptor) {
    return dbus_message_iter_append_basic(writing(writer), DBUS_TYPE_UNIX_FD, &descriptor);
}

bool nb_write_enter(nb_writer *writer, char type, const char *signature, nb_writer *inside) {
    return dbus_message_iter_open_container(writing(writer), type, signature, writing(inside));
}

bool nb_write_leave(nb_writer *writer, nb_writer *inside) {
    return dbus_message_iter_close_container(writing(writer), writing(inside));
}

uint32_t nb_send(nb_connection *connection, nb_draft *draft) {
    dbus_uint32_t serial = 0;
    if (!dbus_connection_send(connection->bus, message_of(draft), &serial))
        serial = 0;
    dbus_message_unref(message_of(draft));
    return serial;
}

void nb_discard(nb_draft *draft) {
    dbus_message_unref(message_of(draft));
}
