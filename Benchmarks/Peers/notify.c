// SPDX-License-Identifier: Apache-2.0
//
// notify(3) as NotifyBus offers it to C: what its functions cost beside the Swift center that they stand on.
//
//     notify calls ADDRESS COUNT   nanoseconds of each call that Apple's notifybench times, in its order and for 50 names
//                                  at a time, COUNT times; and of clock_gettime() and a system call. A line for each.
//
// Everything else as in harness.c. notify_post() writes at once, so there is nothing to flush.

#include "peer.h"

#include <arpa/inet.h>
#include <notify.h>
#include <notify_private.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int descriptor = -1;
static int last_token;
static char **observed;
static int first_token, observed_count;

static void check(uint32_t status, const char *what) {
    if (status != NOTIFY_STATUS_OK) fail("%s gives %u.", what, status);
}

void peer_connect(const char *address, const char *interface) {
    (void)interface;
    setenv("NOTIFYBUS_ADDRESS", address, 1);
}

void peer_observe(char *const *names, int count, bool each) {
    (void)each;
    observed = (char **)names;
    observed_count = count;
    for (int i = 0; i < count; i++) {
        int flags = descriptor < 0 ? 0 : NOTIFY_REUSE;
        check(notify_register_file_descriptor(names[i], &descriptor, flags, &last_token), "registering");
        if (i == 0) first_token = last_token;
    }
}

void peer_cancel(void) {
    check(notify_cancel(last_token), "cancelling");
    descriptor = -1;
}

void peer_loop(void) {
    int token;
    while (read(descriptor, &token, sizeof(token)) == sizeof(token)) {
        int index = (int)ntohl((uint32_t)token) - first_token;
        // Tokens grow by one, but for those that the library needs itself.
        while (index >= observed_count) index -= observed_count;
        delivered(observed[index < 0 ? 0 : index]);
    }
}

void peer_post(const char *name) { check(notify_post(name), "posting"); }

void peer_flush(void) {}

void peer_sync(void) {
    static int sync_descriptor = -1, sync_token;
    char name[64];
    snprintf(name, sizeof(name), "org.example.bench.sync.%d", getpid());
    if (sync_descriptor < 0)
        check(notify_register_file_descriptor(name, &sync_descriptor, 0, &sync_token), "registering");
    check(notify_post(name), "posting");
    int token;
    if (read(sync_descriptor, &token, sizeof(token)) != sizeof(token)) fail("The pipe has ended.");
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

enum { NAMES = 50, CALLS = 20 };

static const char *call_names[CALLS];
static int64_t call_times[CALLS];

#define CALL(what, expression)                                                                                         \
    do {                                                                                                               \
        int64_t began = now();                                                                                         \
        for (int i = 0; i < NAMES; i++) check(expression, what);                                                       \
        call_times[call] += now() - began;                                                                             \
        call_names[call++] = what;                                                                                     \
    } while (0)

/* Those with a port of Mach have a descriptor here. */
static void time_calls(void) {
    static char names[NAMES][64];
    int tokens[NAMES], changed, descriptors[NAMES], call = 0;
    uint64_t value;
    for (int i = 0; i < NAMES; i++) snprintf(names[i], sizeof(names[i]), "org.example.bench.calls.%d", i);
    CALL("notify_register_plain", notify_register_plain(names[i], &tokens[i]));
    CALL("notify_post, the first", notify_post(names[i]));
    CALL("notify_post, the second", notify_post(names[i]));
    CALL("notify_post, the third", notify_post(names[i]));
    CALL("notify_cancel of it", notify_cancel(tokens[i]));
    CALL("notify_register_file_descriptor", notify_register_file_descriptor(names[i], &descriptors[i], 0, &tokens[i]));
    CALL("notify_set_state", notify_set_state(tokens[i], 1));
    CALL("notify_get_state", notify_get_state(tokens[i], &value));
    CALL("notify_set_state, again", notify_set_state(tokens[i], 2));
    CALL("notify_cancel of a descriptor", notify_cancel(tokens[i]));
    CALL("notify_register_check", notify_register_check(names[0], &tokens[i]));
    CALL("notify_check, the first", notify_check(tokens[i], &changed));
    CALL("notify_check, nothing new", notify_check(tokens[i], &changed));
    check(notify_post(names[0]), "posting");
    // A new registration comes behind the post, so once it is made the post has been heard.
    int fence;
    check(notify_register_check(names[1], &fence) + notify_cancel(fence), "registering");
    CALL("notify_check, after a post", notify_check(tokens[i], &changed));
    if (!changed) fail("The post was not heard.");
    CALL("notify_cancel of a check", notify_cancel(tokens[i]));
    CALL("clock_gettime", now() < 0);
    CALL("a system call", syscall(SYS_getppid) < 0);
}

/* Called before main() of the harness, which does not know this command. */
__attribute__((constructor)) static void calls_command(int count, char **arguments) {
    if (count != 4 || strcmp(arguments[1], "calls") != 0) return;
    peer_connect(arguments[2], "");
    int rounds = atoi(arguments[3]);
    for (int i = 0; i < rounds; i++) time_calls();
    for (int i = 0; i < CALLS && call_names[i]; i++)
        printf("%s\t%f\n", call_names[i], (double)call_times[i] / rounds / NAMES);
    exit(0);
}
