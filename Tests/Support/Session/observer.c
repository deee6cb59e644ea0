/* SPDX-License-Identifier: Apache-2.0 */
#include "observer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <notify.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAXIMUM = 16 };

static struct {
    int descriptor;
    int count;
    int tokens[MAXIMUM];
    const char *names[MAXIMUM];
} observer;

void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

_Noreturn void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

int observer_start(char **names) {
    for (; *names; names++) {
        if (observer.count == MAXIMUM) fail("No more than %d names.", MAXIMUM);
        int flags = observer.count ? NOTIFY_REUSE : 0;
        uint32_t status =
            notify_register_file_descriptor(*names, &observer.descriptor, flags, &observer.tokens[observer.count]);
        if (status != NOTIFY_STATUS_OK) fail("Can't observe %s: status %u of <notify.h>.", *names, (unsigned)status);
        observer.names[observer.count++] = *names;
    }
    if (!observer.count) fail("Which names?");
    /* So that all there is can be read, and no more waited for. */
    if (fcntl(observer.descriptor, F_SETFL, O_NONBLOCK)) fail("fcntl: %s", strerror(errno));
    say("observes");
    return observer.descriptor;
}

void observer_hear(void) {
    uint32_t word;
    /* A token is written and read as a whole: four bytes into a pipe. */
    while (read(observer.descriptor, &word, sizeof word) == (ssize_t)sizeof word) {
        int token = (int)ntohl(word);
        for (int index = 0; index < observer.count; index++) {
            if (observer.tokens[index] == token) say("heard %s", observer.names[index]);
        }
    }
}
