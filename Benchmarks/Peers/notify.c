// SPDX-License-Identifier: Apache-2.0
//
// notify(3) as NotifyBus offers it to C: what its functions cost beside the Swift center that they stand on.
//
//     notify check COUNT     nanoseconds of a notify_check(), of clock_gettime(), and of a system call, COUNT times each
//
// Everything else as in harness.c. notify_post() writes at once, so there is nothing to flush.

#include "peer.h"

#include <arpa/inet.h>
#include <notify.h>
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
        if (status != NOTIFY_STATUS_OK)
                fail("%s gives %u.", what, status);
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
                if (i == 0)
                        first_token = last_token;
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
                while (index >= observed_count)
                        index -= observed_count;
                delivered(observed[index < 0 ? 0 : index]);
        }
}

void peer_post(const char *name) {
        check(notify_post(name), "posting");
}

void peer_flush(void) {}

void peer_sync(void) {
        static int sync_descriptor = -1, sync_token;
        char name[64];
        snprintf(name, sizeof(name), "org.example.bench.sync.%d", getpid());
        if (sync_descriptor < 0)
                check(notify_register_file_descriptor(name, &sync_descriptor, 0, &sync_token), "registering");
        check(notify_post(name), "posting");
        int token;
        if (read(sync_descriptor, &token, sizeof(token)) != sizeof(token))
                fail("The pipe has ended.");
}

static int64_t now(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Called before main() of the harness, which does not know this command. */
__attribute__((constructor)) static void check_command(int count, char **arguments) {
        if (count != 3 || strcmp(arguments[1], "check") != 0)
                return;
        int rounds = atoi(arguments[2]), token, changed = 0;
        check(notify_register_check("self.org.example.bench", &token), "registering");
        int64_t began = now();
        for (int i = 0; i < rounds; i++)
                check(notify_check(token, &changed), "checking");
        int64_t checked = now();
        for (int i = 0; i < rounds; i++)
                changed += (int)now();
        int64_t clocked = now();
        for (int i = 0; i < rounds; i++)
                changed += (int)syscall(SYS_getppid);
        int64_t called = now();
        printf("%f %f %f\n", (double)(checked - began) / rounds, (double)(clocked - checked) / rounds,
               (double)(called - clocked) / rounds);
        exit(changed == INT32_MIN);
}
