// SPDX-License-Identifier: Apache-2.0
//
// The peer without any bus: the poster touches a file, and the observer watches it with inotify(7). Equal events that
// wait are merged by the kernel, so it can't count.

#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static int watcher;
static const char *folder;
static char *const *observed;
static int first_watch, last_watch;

static const char *path_of(const char *name) {
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

void peer_connect(const char *address, const char *interface) {
    (void)interface;
    folder = address;
    watcher = inotify_init1(IN_CLOEXEC);
    if (watcher < 0) fail("inotify: %s", strerror(errno));
}

void peer_observe(char *const *names, int count, bool each) {
    (void)each;
    observed = names;
    for (int i = 0; i < count; i++) {
        int file = open(path_of(names[i]), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        close(file);
        last_watch = inotify_add_watch(watcher, path_of(names[i]), IN_ATTRIB);
        if (file < 0 || last_watch < 0) fail("inotify: %s: %s", path_of(names[i]), strerror(errno));
        if (i == 0) first_watch = last_watch;
    }
}

void peer_cancel(void) { inotify_rm_watch(watcher, last_watch); }

void peer_loop(void) {
    _Alignas(struct inotify_event) char buffer[4096];
    for (ssize_t length; (length = read(watcher, buffer, sizeof(buffer))) > 0;) {
        for (char *at = buffer; at < buffer + length;) {
            const struct inotify_event *event = (const void *)at;
            if (event->mask & IN_ATTRIB) delivered(observed[event->wd - first_watch]);
            at += sizeof(*event) + event->len;
        }
    }
}

void peer_post(const char *name) {
    if (utimensat(AT_FDCWD, path_of(name), NULL, 0) < 0) fail("inotify: %s: %s", path_of(name), strerror(errno));
}

void peer_flush(void) {}

void peer_sync(void) {}
