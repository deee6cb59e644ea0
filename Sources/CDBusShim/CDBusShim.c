/* SPDX-License-Identifier: Apache-2.0 */
/* CDBusShim.h, implemented with libdbus. */

#include "CDBusShim.h"

#include <dbus/dbus.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* libdbus makes one watch for reading and one for writing; a connection never has more than one pair. */
enum { MAX_WATCHES = 4 };

struct nb_entry {
    DBusConnection *bus;
    DBusWatch *watches[MAX_WATCHES];
};

static void copy_error(nb_error *error, const char *name, const char *message) {
    strncpy(error->name, name, sizeof error->name - 1);
    error->name[sizeof error->name - 1] = '\0';
    strncpy(error->message, message, sizeof error->message - 1);
    error->message[sizeof error->message - 1] = '\0';
}

static dbus_bool_t add_watch(DBusWatch *watch, void *data) {
    nb_entry *entry = data;
    for (int i = 0; i < MAX_WATCHES; i++) {
        if (entry->watches[i] == NULL) {
            entry->watches[i] = watch;
            return TRUE;
        }
    }
    return FALSE;
}

static void remove_watch(DBusWatch *watch, void *data) {
    nb_entry *entry = data;
    for (int i = 0; i < MAX_WATCHES; i++) {
        if (entry->watches[i] == watch)
            entry->watches[i] = NULL;
    }
}

nb_entry *nb_enter(const char *address, nb_error *error) {
    DBusError bus_error = DBUS_ERROR_INIT;
    nb_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        copy_error(error, DBUS_ERROR_NO_MEMORY, "out of memory");
        return NULL;
    }
    /* libdbus would ignore SIGPIPE for the whole program, without need: it writes with MSG_NOSIGNAL. */
    dbus_connection_set_change_sigpipe(FALSE);
    /* Private: not shared with anything else in the process. */
    entry->bus = dbus_connection_open_private(address, &bus_error);
    if (entry->bus == NULL) {
        copy_error(error, bus_error.name, bus_error.message);
        dbus_error_free(&bus_error);
        free(entry);
        return NULL;
    }
    dbus_connection_set_exit_on_disconnect(entry->bus, FALSE);
    if (!dbus_connection_set_watch_functions(entry->bus, add_watch, remove_watch, NULL, entry, NULL)) {
        nb_give_up(entry);
        copy_error(error, DBUS_ERROR_NO_MEMORY, "out of memory");
        return NULL;
    }
    return entry;
}

void nb_give_up(nb_entry *entry) {
    dbus_connection_set_watch_functions(entry->bus, NULL, NULL, NULL, NULL, NULL);
    dbus_connection_close(entry->bus);
    dbus_connection_unref(entry->bus);
    free(entry);
}

int nb_entry_fd(const nb_entry *entry) {
    int fd = -1;
    if (!dbus_connection_get_socket(entry->bus, &fd))
        return -1;
    return fd;
}

short nb_entry_events(const nb_entry *entry) {
    short events = 0;
    for (int i = 0; i < MAX_WATCHES; i++) {
        DBusWatch *watch = entry->watches[i];
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

nb_entry_state nb_entry_service(nb_entry *entry, short revents) {
    unsigned int ready = 0;
    if (revents & POLLIN)
        ready |= DBUS_WATCH_READABLE;
    if (revents & POLLOUT)
        ready |= DBUS_WATCH_WRITABLE;
    if (revents & POLLHUP)
        ready |= DBUS_WATCH_HANGUP;
    if (revents & POLLERR)
        ready |= DBUS_WATCH_ERROR;
    /* Handling one watch may remove the other, so look up each again. */
    for (int i = 0; i < MAX_WATCHES; i++) {
        DBusWatch *watch = entry->watches[i];
        if (watch == NULL || !dbus_watch_get_enabled(watch))
            continue;
        unsigned int wanted = dbus_watch_get_flags(watch) | DBUS_WATCH_HANGUP | DBUS_WATCH_ERROR;
        if (ready & wanted)
            dbus_watch_handle(watch, ready & wanted);
    }
    if (!dbus_connection_get_is_connected(entry->bus))
        return NB_REFUSED;
    return dbus_connection_get_is_authenticated(entry->bus) ? NB_LET_IN : NB_ENTERING;
}

int nb_take_socket(nb_entry *entry, nb_error *guid) {
    char *id = dbus_connection_get_server_id(entry->bus);
    copy_error(guid, "", id != NULL ? id : "");
    dbus_free(id);
    /* libdbus only closes its own descriptor, which neither reads, writes nor shuts down. */
    int fd = fcntl(nb_entry_fd(entry), F_DUPFD_CLOEXEC, 0);
    if (fd >= 0)
        nb_give_up(entry);
    return fd;
}

bool nb_is_message(const void *bytes, size_t length) {
    DBusError error = DBUS_ERROR_INIT;
    if (length > DBUS_MAXIMUM_MESSAGE_LENGTH)
        return false;
    DBusMessage *message = dbus_message_demarshal(bytes, (int)length, &error);
    dbus_error_free(&error);
    if (message == NULL)
        return false;
    dbus_message_unref(message);
    return true;
}
