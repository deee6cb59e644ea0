/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of CDBusShim.h over libdbus. */

#include "internal.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void copy_error(nb_error *error, const char *name, const char *message) {
    strncpy(error->name, name, sizeof error->name - 1);
    error->name[sizeof error->name - 1] = '\0';
    strncpy(error->message, message, sizeof error->message - 1);
    error->message[sizeof error->message - 1] = '\0';
}

static dbus_bool_t add_watch(DBusWatch *watch, void *data) {
    nb_connection *connection = data;
    for (int i = 0; i < NB_MAX_WATCHES; i++) {
        if (connection->watches[i] == NULL) {
            connection->watches[i] = watch;
            return TRUE;
        }
    }
    return FALSE;
}

static void remove_watch(DBusWatch *watch, void *data) {
    nb_connection *connection = data;
    for (int i = 0; i < NB_MAX_WATCHES; i++) {
        if (connection->watches[i] == watch)
            connection->watches[i] = NULL;
    }
}

static void forget_current(nb_connection *connection) {
    if (connection->current != NULL)
        dbus_message_unref(connection->current);
    connection->current = NULL;
}

nb_connection *nb_open(const char *address, nb_error *error) {
    DBusError bus_error = DBUS_ERROR_INIT;
    nb_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        copy_error(error, DBUS_ERROR_NO_MEMORY, "out of memory");
        return NULL;
    }
    /* libdbus would ignore SIGPIPE for the whole program; it writes to sockets with MSG_NOSIGNAL and needs no help. */
    dbus_connection_set_change_sigpipe(FALSE);
    /* Private, so that nobody else in the process reads from it, and so that closing it is ours to decide. */
    connection->bus = dbus_connection_open_private(address, &bus_error);
    if (connection->bus == NULL) {
        copy_error(error, bus_error.name, bus_error.message);
        dbus_error_free(&bus_error);
        free(connection);
        return NULL;
    }
    dbus_connection_set_exit_on_disconnect(connection->bus, FALSE);
    /* dbus_bus_register() would block for the answer to Hello, with a time limit that is not ours; so we call it. */
    if (!dbus_connection_set_watch_functions(connection->bus, add_watch, remove_watch, NULL, connection, NULL) ||
        (connection->hello_serial = nb_call_bus(connection, "Hello", NULL)) == 0) {
        nb_close(connection);
        copy_error(error, DBUS_ERROR_NO_MEMORY, "out of memory");
        return NULL;
    }
    return connection;
}

void nb_close(nb_connection *connection) {
    forget_current(connection);
    dbus_connection_set_watch_functions(connection->bus, NULL, NULL, NULL, NULL, NULL);
    /* The lifecycle agent may hold a duplicate of the socket: close(2) alone would not tell the bus. */
    int fd = nb_fd(connection);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    dbus_connection_close(connection->bus);
    dbus_connection_unref(connection->bus);
    free(connection);
}

uint32_t nb_hello_serial(const nb_connection *connection) {
    return connection->hello_serial;
}

int nb_fd(const nb_connection *connection) {
    int fd = -1;
    if (!dbus_connection_get_socket(connection->bus, &fd))
        return -1;
    return fd;
}

short nb_events(const nb_connection *connection) {
    short events = 0;
    for (int i = 0; i < NB_MAX_WATCHES; i++) {
        DBusWatch *watch = connection->watches[i];
        if (watch == NULL || !dbus_watch_get_enabled(watch))
            continue;
        unsigned int flags = dbus_watch_get_flags(watch);
        if (flags & DBUS_WATCH_READABLE)
            events |= POLLIN;
        if (flags & DBUS_WATCH_WRITABLE)
            events |= POLLOUT;
    }
    return events;
}

bool nb_hand_over(nb_connection *connection) {
    /* libdbus does not read on right after it was let in: what the bus says from here on is still in the socket. */
    if (!connection->is_handed_over && dbus_connection_get_is_authenticated(connection->bus))
        connection->is_handed_over = true;
    return connection->is_handed_over;
}

void nb_service(nb_connection *connection, short revents) {
    unsigned int ready = 0;
    if ((revents & POLLIN) && !connection->is_handed_over)
        ready |= DBUS_WATCH_READABLE;
    if (revents & POLLOUT)
        ready |= DBUS_WATCH_WRITABLE;
    if (revents & POLLHUP)
        ready |= DBUS_WATCH_HANGUP;
    if (revents & POLLERR)
        ready |= DBUS_WATCH_ERROR;
    forget_current(connection);
    /* Handling one watch may remove the other one, so each is looked up anew. */
    for (int i = 0; i < NB_MAX_WATCHES; i++) {
        DBusWatch *watch = connection->watches[i];
        if (watch == NULL || !dbus_watch_get_enabled(watch))
            continue;
        unsigned int wanted = dbus_watch_get_flags(watch) | DBUS_WATCH_HANGUP | DBUS_WATCH_ERROR;
        if (ready & wanted)
            dbus_watch_handle(watch, ready & wanted);
    }
}

/* The only argument of a message, if there is exactly one and it is a string. */
static void read_string(nb_message *message, DBusMessage *raw) {
    DBusMessageIter arguments;
    if (!dbus_message_has_signature(raw, DBUS_TYPE_STRING_AS_STRING) || !dbus_message_iter_init(raw, &arguments))
        return;
    dbus_message_iter_get_basic(&arguments, &message->string);
    message->string_length = strlen(message->string);
}

static void read_number(nb_message *message, DBusMessage *raw) {
    DBusMessageIter arguments;
    if (!dbus_message_has_signature(raw, DBUS_TYPE_UINT32_AS_STRING) || !dbus_message_iter_init(raw, &arguments))
        return;
    dbus_message_iter_get_basic(&arguments, &message->number);
}

/* Says what the current message is. */
static nb_kind describe(nb_connection *connection, nb_message *message) {
    DBusMessage *raw = connection->current;
    message->path = dbus_message_get_path(raw);
    message->interface = dbus_message_get_interface(raw);
    message->member = dbus_message_get_member(raw);
    message->sender = dbus_message_get_sender(raw);
    message->serial = dbus_message_get_serial(raw);
    switch (dbus_message_get_type(raw)) {
    case DBUS_MESSAGE_TYPE_SIGNAL:
        /* The library's own message; a peer cannot send it, libdbus drops the Local interface from the wire. */
        if (dbus_message_is_signal(raw, DBUS_INTERFACE_LOCAL, "Disconnected")) {
            connection->disconnected = true;
            return message->kind = NB_DISCONNECTED;
        }
        read_string(message, raw);
        return message->kind = NB_SIGNAL;
    case DBUS_MESSAGE_TYPE_METHOD_RETURN:
        message->reply_serial = dbus_message_get_reply_serial(raw);
        read_string(message, raw);
        read_number(message, raw);
        return message->kind = NB_REPLY;
    case DBUS_MESSAGE_TYPE_ERROR:
        message->reply_serial = dbus_message_get_reply_serial(raw);
        message->error_name = dbus_message_get_error_name(raw);
        read_string(message, raw);
        return message->kind = NB_ERROR;
    default:
        message->wants_reply = !dbus_message_get_no_reply(raw);
        return message->kind = NB_CALL;
    }
}

nb_kind nb_next(nb_connection *connection, nb_message *message) {
    memset(message, 0, sizeof *message);
    forget_current(connection);
    if (connection->disconnected)
        return message->kind = NB_DISCONNECTED;
    connection->current = dbus_connection_pop_message(connection->bus);
    if (connection->current == NULL)
        return message->kind = NB_NOTHING;
    return describe(connection, message);
}

nb_kind nb_take(nb_connection *connection, const void *bytes, size_t length, nb_message *message) {
    DBusError error = DBUS_ERROR_INIT;
    memset(message, 0, sizeof *message);
    forget_current(connection);
    if (length > DBUS_MAXIMUM_MESSAGE_LENGTH)
        return message->kind = NB_NOTHING;
    connection->current = dbus_message_demarshal(bytes, (int)length, &error);
    dbus_error_free(&error);
    if (connection->current == NULL || dbus_message_is_signal(connection->current, DBUS_INTERFACE_LOCAL, "Disconnected"))
        return message->kind = NB_NOTHING;
    return describe(connection, message);
}

static DBusMessage *new_bus_call(const char *member) {
    return dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, member);
}

/* dbus_message_append_args() is variadic and wants a pointer to the string's pointer; this is its only use. */
static bool append_string(DBusMessage *message, const char *string) {
    return dbus_message_append_args(message, DBUS_TYPE_STRING, &string, DBUS_TYPE_INVALID);
}

uint32_t nb_call_bus(nb_connection *connection, const char *member, const char *argument) {
    dbus_uint32_t serial = 0;
    DBusMessage *call = new_bus_call(member);
    if (call == NULL)
        return 0;
    if ((argument != NULL && !append_string(call, argument)) ||
        !dbus_connection_send(connection->bus, call, &serial))
        serial = 0;
    dbus_message_unref(call);
    return serial;
}

/* Gives the bytes of a message with a serial number, and lets go of the message. */
static size_t marshal(DBusMessage *message, uint32_t serial, uint8_t **ret_bytes) {
    char *bytes = NULL;
    int length = 0;
    if (message == NULL)
        return 0;
    dbus_message_set_serial(message, serial);
    if (!dbus_message_marshal(message, &bytes, &length))
        length = 0;
    dbus_message_unref(message);
    *ret_bytes = (uint8_t *)bytes;
    return (size_t)length;
}

size_t nb_make_signal(const char *path, const char *interface, const char *member, const char *string,
                      uint32_t serial, uint8_t **ret_bytes) {
    DBusMessage *signal = dbus_message_new_signal(path, interface, member);
    if (signal != NULL && !append_string(signal, string)) {
        dbus_message_unref(signal);
        signal = NULL;
    }
    return marshal(signal, serial, ret_bytes);
}

size_t nb_make_bus_call(const char *member, const char *argument, uint32_t serial, uint8_t **ret_bytes) {
    DBusMessage *call = new_bus_call(member);
    if (call != NULL && argument != NULL && !append_string(call, argument)) {
        dbus_message_unref(call);
        call = NULL;
    }
    return marshal(call, serial, ret_bytes);
}

static DBusMessage *new_refusal(nb_connection *connection) {
    return dbus_message_new_error(connection->current, DBUS_ERROR_UNKNOWN_METHOD,
                                  "This connection takes no method calls.");
}

size_t nb_make_refusal(nb_connection *connection, uint32_t serial, uint8_t **ret_bytes) {
    return marshal(new_refusal(connection), serial, ret_bytes);
}

void nb_refuse(nb_connection *connection) {
    DBusMessage *refusal = new_refusal(connection);
    if (refusal == NULL)
        return;
    dbus_connection_send(connection->bus, refusal, NULL);
    dbus_message_unref(refusal);
}

void nb_free(uint8_t *bytes) {
    dbus_free(bytes);
}
