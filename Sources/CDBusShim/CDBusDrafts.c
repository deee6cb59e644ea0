/* SPDX-License-Identifier: Apache-2.0 */
/* CDBusDrafts.h, implemented with libdbus. */

#include "CDBusDrafts.h"

#include <dbus/dbus.h>

_Static_assert(sizeof(nb_writer) >= sizeof(DBusMessageIter), "an iterator must fit into a writer");

/* The shim's names for libdbus types; an nb_draft is just a DBusMessage. */
static DBusMessageIter *writing(nb_writer *writer) {
    return (DBusMessageIter *)(void *)writer;
}

static DBusMessage *message_of(nb_draft *draft) {
    return (DBusMessage *)(void *)draft;
}

static nb_draft *draft_of(DBusMessage *message) {
    return (nb_draft *)(void *)message;
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

size_t nb_draft_bytes(nb_draft *draft, uint32_t serial, uint8_t **ret_bytes) {
    char *bytes = NULL;
    int length = 0;
    dbus_message_set_serial(message_of(draft), serial);
    if (!dbus_message_marshal(message_of(draft), &bytes, &length))
        length = 0;
    dbus_message_unref(message_of(draft));
    *ret_bytes = (uint8_t *)bytes;
    return (size_t)length;
}

void nb_discard(nb_draft *draft) {
    dbus_message_unref(message_of(draft));
}
