// SPDX-License-Identifier: Apache-2.0
//
// Ways to learn that another process has committed to an SQLite database, which is in WAL mode. Instead of an interface
// the program is given WAY:PATH. The poster commits, and then tells the observer in this way, which wakes it to look
// whether the database has changed:
//
//     name         a name posted with notify_post(), and the callback of notify_register_callback()
//     descriptor   the same name, and the descriptor of notify_register_file_descriptor()
//     bus          a signal on the bus without a library, the floor of both
//     pipe         a byte in a named pipe
//     inotify      inotify(7) on the write-ahead log; the writer does nothing more
//     poll         PRAGMA data_version, once a millisecond; the writer does nothing more
//
// With any other way the observer is not told.

#define NOTIFYBUS_EXTENSIONS

#include "peer.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <notify.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define INTERFACE "org.example.commit"

static char way[16], path[PATH_MAX - 16];
static sqlite3 *database;
static sqlite3_stmt *insertion, *version;
static int descriptor = -1;

static void check(int result) {
    if (result != SQLITE_OK) fail("SQLite: %s", sqlite3_errmsg(database));
}

static const char *beside(const char *suffix) {
    static char other[PATH_MAX];
    snprintf(other, sizeof(other), "%s%s", path, suffix);
    return other;
}

static bool goes_by(const char *wanted) { return strcmp(way, wanted) == 0; }

void peer_connect(const char *address, const char *interface) {
    setenv("NOTIFYBUS_ADDRESS", address, 1);
    if (sscanf(interface, "%15[a-z]:%4000s", way, path) != 2) fail("There is no way and path in '%s'.", interface);
    if (goes_by("bus")) raw_connect(address);
    if (goes_by("pipe") && mkfifo(beside("-pipe"), 0600) < 0 && errno != EEXIST)
        fail("%s: %s", beside("-pipe"), strerror(errno));
    if (goes_by("pipe")) descriptor = open(beside("-pipe"), O_RDWR | O_CLOEXEC);
    check(sqlite3_open(path, &database));
    check(sqlite3_busy_timeout(database, 10000));
    // The poster connects second, and must commit nothing yet: the observer would report it.
    check(sqlite3_exec(database,
                       "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                       "CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, time REAL);"
                       "INSERT OR IGNORE INTO jobs VALUES (1, 0);",
                       NULL, NULL, NULL));
    check(sqlite3_prepare_v2(database, "REPLACE INTO jobs VALUES (1, julianday())", -1, &insertion, NULL));
    check(sqlite3_prepare_v2(database, "PRAGMA data_version", -1, &version, NULL));
}

/* A number that changes with each commit of another connection. */
static int data_version(void) {
    if (sqlite3_step(version) != SQLITE_ROW) fail("SQLite: %s", sqlite3_errmsg(database));
    int result = sqlite3_column_int(version, 0);
    sqlite3_reset(version);
    return result;
}

static const char *observed;
/* The version of the database that was seen last. */
static int seen;

/* Reports each commit that can be seen. */
static void look(void) {
    for (int now = data_version(); now != seen; now = data_version()) {
        seen = now;
        delivered(observed);
    }
}

static void is_committed(int token, void *context) {
    (void)token, (void)context;
    look();
}

void peer_observe(char *const *names, int count, bool each) {
    (void)count, (void)each;
    int token;
    observed = names[0];
    seen = data_version();
    uint32_t status = NOTIFY_STATUS_OK;
    if (goes_by("name")) status = notify_register_callback(observed, &token, is_committed, NULL);
    if (goes_by("descriptor")) status = notify_register_file_descriptor(observed, &descriptor, 0, &token);
    if (status != NOTIFY_STATUS_OK) fail("registering fails");
    if (goes_by("bus")) descriptor = raw_observe(INTERFACE);
    if (goes_by("inotify")) {
        descriptor = inotify_init1(IN_CLOEXEC);
        if (inotify_add_watch(descriptor, beside("-wal"), IN_MODIFY) < 0)
            fail("inotify: %s: %s", beside("-wal"), strerror(errno));
    }
}

void peer_cancel(void) { fail("This doesn't cancel."); }

/* Waits until there may have been a commit. */
static void wait_for_commit(void) {
    char bytes[4096];
    // A pipe has a byte for each commit, the descriptor of a name four.
    size_t most = goes_by("pipe") ? 1 : goes_by("descriptor") ? 4 : sizeof(bytes);
    if (descriptor < 0)
        usleep(1000);
    else if (read(descriptor, bytes, most) <= 0)
        exit(0);
}

void peer_loop(void) {
    // The library's thread looks.
    while (goes_by("name")) pause();
    for (;;) {
        wait_for_commit();
        // The log is written before the commit can be seen, and no other event comes.
        for (int tries = 0; goes_by("inotify") && data_version() == seen && tries < 20000; tries++) usleep(50);
        look();
        // Skips the other events of this commit.
        struct pollfd left = {.fd = descriptor, .events = POLLIN};
        while (goes_by("inotify") && poll(&left, 1, 0) > 0) wait_for_commit();
    }
}

static void post_on_bus(const char *name) {
    static char *bytes;
    static int length;
    if (!bytes) {
        raw_signal(INTERFACE, name, NULL, &bytes, &length);
        descriptor = raw_socket();
    }
    if (write(descriptor, bytes, (size_t)length) != length) fail("The bus has disconnected this.");
}

void peer_post(const char *name) {
    if (sqlite3_step(insertion) != SQLITE_DONE) fail("SQLite: %s", sqlite3_errmsg(database));
    check(sqlite3_reset(insertion));
    if ((goes_by("name") || goes_by("descriptor")) && notify_post(name) != NOTIFY_STATUS_OK) fail("posting fails");
    if (goes_by("bus")) post_on_bus(name);
    if (goes_by("pipe") && write(descriptor, "", 1) != 1) fail("%s: %s", beside("-pipe"), strerror(errno));
}

void peer_flush(void) {}

void peer_sync(void) {}
