/* SPDX-License-Identifier: Apache-2.0 */
/* CDBusShim.h, implemented with libdbus. */

#include "CDBusShim.h"

#include <dbus/dbus.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

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
        if (entry->watches[i] == watch) entry->watches[i] = NULL;
    }
}

static nb_entry *enter(const char *address, nb_error *error) {
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

/* An entry made by a thread of its own, for which the caller may stop waiting. */
struct attempt {
    pthread_mutex_t lock;
    pthread_cond_t ends;
    char *address;
    nb_entry *entry;
    nb_error error;
    bool has_ended, is_abandoned;
};

/* Abandoned attempts wait in connect(2) for as long as the bus does not read. More are not made meanwhile. */
enum { MAX_ABANDONED = 4 };
static _Atomic int abandoned;

static void free_attempt(struct attempt *attempt) {
    pthread_cond_destroy(&attempt->ends);
    pthread_mutex_destroy(&attempt->lock);
    free(attempt->address);
    free(attempt);
}

static void *try_to_enter(void *data) {
    struct attempt *attempt = data;
    nb_error error = {0};
    nb_entry *entry = enter(attempt->address, &error);
    pthread_mutex_lock(&attempt->lock);
    attempt->entry = entry;
    attempt->error = error;
    attempt->has_ended = true;
    bool is_abandoned = attempt->is_abandoned;
    pthread_cond_signal(&attempt->ends);
    pthread_mutex_unlock(&attempt->lock);
    if (is_abandoned) {
        if (entry != NULL) nb_give_up(entry);
        free_attempt(attempt);
        atomic_fetch_sub(&abandoned, 1);
    }
    return NULL;
}

static struct attempt *begin_attempt(const char *address, pthread_t *thread) {
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (attempt == NULL) return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&attempt->ends, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&attempt->lock, NULL);
    attempt->address = strdup(address);
    sigset_t everything, before;
    sigfillset(&everything);
    /* The program's handlers run on its own threads. */
    pthread_sigmask(SIG_SETMASK, &everything, &before);
    bool has_begun = attempt->address != NULL && pthread_create(thread, NULL, try_to_enter, attempt) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (has_begun) return attempt;
    free_attempt(attempt);
    return NULL;
}

nb_entry *nb_enter(const char *address, int milliseconds, nb_error *error) {
    /* Only these connect with connect(2) alone; others start a program or ask the network. */
    if (strncmp(address, "unix:path=", 10) != 0 && strncmp(address, "unix:abstract=", 14) != 0)
        return enter(address, error);
    pthread_t thread;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += milliseconds / 1000;
    end.tv_nsec += milliseconds % 1000 * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000L;
    }
    if (atomic_load(&abandoned) >= MAX_ABANDONED) {
        copy_error(error, NB_TIMED_OUT, "too many connections are waiting to be accepted");
        return NULL;
    }
    struct attempt *attempt = begin_attempt(address, &thread);
    if (attempt == NULL) return enter(address, error);
    pthread_mutex_lock(&attempt->lock);
    while (!attempt->has_ended && pthread_cond_timedwait(&attempt->ends, &attempt->lock, &end) != ETIMEDOUT) continue;
    attempt->is_abandoned = !attempt->has_ended;
    if (attempt->is_abandoned) atomic_fetch_add(&abandoned, 1);
    bool is_abandoned = attempt->is_abandoned;
    pthread_mutex_unlock(&attempt->lock);
    if (is_abandoned) {
        pthread_detach(thread);
        copy_error(error, NB_TIMED_OUT, "the connection was not accepted");
        return NULL;
    }
    pthread_join(thread, NULL);
    nb_entry *entry = attempt->entry;
    *error = attempt->error;
    free_attempt(attempt);
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
    if (!dbus_connection_get_socket(entry->bus, &fd)) return -1;
    return fd;
}

short nb_entry_events(const nb_entry *entry) {
    short events = 0;
    for (int i = 0; i < MAX_WATCHES; i++) {
        DBusWatch *watch = entry->watches[i];
        if (watch == NULL || !dbus_watch_get_enabled(watch)) continue;
        unsigned int flags = dbus_watch_get_flags(watch);
        if (flags & DBUS_WATCH_READABLE) events |= POLLIN;
        if (flags & DBUS_WATCH_WRITABLE) events |= POLLOUT;
    }
    return events;
}

nb_entry_state nb_entry_service(nb_entry *entry, short revents) {
    unsigned int ready = 0;
    if (revents & POLLIN) ready |= DBUS_WATCH_READABLE;
    if (revents & POLLOUT) ready |= DBUS_WATCH_WRITABLE;
    if (revents & POLLHUP) ready |= DBUS_WATCH_HANGUP;
    if (revents & POLLERR) ready |= DBUS_WATCH_ERROR;
    /* Handling one watch may remove the other, so look up each again. */
    for (int i = 0; i < MAX_WATCHES; i++) {
        DBusWatch *watch = entry->watches[i];
        if (watch == NULL || !dbus_watch_get_enabled(watch)) continue;
        unsigned int wanted = dbus_watch_get_flags(watch) | DBUS_WATCH_HANGUP | DBUS_WATCH_ERROR;
        if (ready & wanted) dbus_watch_handle(watch, ready & wanted);
    }
    if (!dbus_connection_get_is_connected(entry->bus)) return NB_REFUSED;
    return dbus_connection_get_is_authenticated(entry->bus) ? NB_LET_IN : NB_ENTERING;
}

int nb_take_socket(nb_entry *entry, nb_error *guid) {
    char *id = dbus_connection_get_server_id(entry->bus);
    copy_error(guid, "", id != NULL ? id : "");
    dbus_free(id);
    /* libdbus only closes its own descriptor, which neither reads, writes nor shuts down. */
    int fd = fcntl(nb_entry_fd(entry), F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) nb_give_up(entry);
    return fd;
}

/* The socket that an alternative of an address names; its length is 0 if that is none. */
static socklen_t name_socket(DBusAddressEntry *entry, struct sockaddr_un *name) {
    const char *path = dbus_address_entry_get_value(entry, "path");
    const char *abstract = dbus_address_entry_get_value(entry, "abstract");
    const char *text = path != NULL ? path : abstract;
    if (strcmp(dbus_address_entry_get_method(entry), "unix") != 0 || text == NULL) return 0;
    size_t length = strlen(text);
    if (length + 1 > sizeof name->sun_path) return 0;
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* An abstract name begins with a NUL, and ends where its length says. */
    memcpy(name->sun_path + (path == NULL), text, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
}

int nb_connect(const char *address, nb_error *guid) {
    DBusAddressEntry **entries;
    int count;
    if (!dbus_parse_address(address, &entries, &count, NULL)) {
        errno = EINVAL;
        return -1;
    }
    int fd = -1, code = ECONNREFUSED;
    for (int i = 0; i < count && fd < 0 && code != EAGAIN; i++) {
        struct sockaddr_un name;
        socklen_t length = name_socket(entries[i], &name);
        if (length == 0) break;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&name, length) < 0) {
            code = errno;
            if (fd >= 0) close(fd);
            fd = -1;
            continue;
        }
        const char *expected = dbus_address_entry_get_value(entries[i], "guid");
        copy_error(guid, "", expected != NULL ? expected : "");
    }
    dbus_address_entries_free(entries);
    errno = code;
    return fd;
}

bool nb_is_message(const void *bytes, size_t length) {
    DBusError error = DBUS_ERROR_INIT;
    if (length > DBUS_MAXIMUM_MESSAGE_LENGTH) return false;
    DBusMessage *message = dbus_message_demarshal(bytes, (int)length, &error);
    dbus_error_free(&error);
    if (message == NULL) return false;
    dbus_message_unref(message);
    return true;
}
