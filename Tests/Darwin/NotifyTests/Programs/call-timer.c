/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times calls in the manner of Darwin's notifybench: each function in a loop, with the clock of Mach. The output is
 * for people; that each call says what it should is checked.
 */
#include <mach/mach.h>
#include <mach/mach_time.h>
#include <notify.h>
#include <notify_private.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rounds = 1000;

static void demand(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

static void report(const char *what, uint64_t start) {
    mach_timebase_info_data_t base;
    mach_timebase_info(&base);
    uint64_t nanoseconds = (mach_absolute_time() - start) * base.numer / base.denom;
    fprintf(stderr, "%-28s %10llu ns\n", what, (unsigned long long)(nanoseconds / (uint64_t)rounds));
}

#define TIMED(what, ...)                                                                                               \
    do {                                                                                                               \
        uint64_t start = mach_absolute_time();                                                                         \
        for (int i = 0; i < rounds; i++) {                                                                             \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
        report(what, start);                                                                                           \
    } while (0)

int main(int argc, char **argv) {
    const char *names[] = {"com.example.bench", "self.com.example.bench"};
    if (argc > 1) rounds = atoi(argv[1]);
    for (int kind = 0; kind < 2; kind++) {
        const char *name = names[kind];
        int token, check, other;
        TIMED("post", demand(notify_post(name) == NOTIFY_STATUS_OK, "post"););
        TIMED("register and cancel", {
            demand(notify_register_check(name, &token) == NOTIFY_STATUS_OK, "register");
            demand(notify_cancel(token) == NOTIFY_STATUS_OK, "cancel");
        });
        demand(notify_register_check(name, &token) == NOTIFY_STATUS_OK, "register");
        demand(notify_check(token, &check) == NOTIFY_STATUS_OK && check == 1, "the first check");
        TIMED("check",
              { demand(notify_check(token, &check) == NOTIFY_STATUS_OK && check == 0, "a check of nothing new"); });
        TIMED("post, register, check", {
            demand(notify_post(name) == NOTIFY_STATUS_OK, "post");
            demand(notify_register_plain("com.example.bench.other", &other) == NOTIFY_STATUS_OK, "register");
            demand(notify_cancel(other) == NOTIFY_STATUS_OK, "cancel");
            demand(notify_check(token, &check) == NOTIFY_STATUS_OK && check == 1, "a check of the own post");
        });
        TIMED("suspend and resume", {
            demand(notify_suspend(token) == NOTIFY_STATUS_OK && notify_resume(token) == NOTIFY_STATUS_OK, "suspend");
        });
        demand(notify_cancel(token) == NOTIFY_STATUS_OK, "cancel");
        demand(notify_check(token, &check) == NOTIFY_STATUS_INVALID_TOKEN, "a check of what was cancelled");
    }
    char many[64];
    int *tokens = calloc((size_t)rounds, sizeof *tokens);
    if (!tokens) return 1;
    TIMED("register another name", {
        snprintf(many, sizeof many, "com.example.bench.%d", i);
        demand(notify_register_check(many, &tokens[i]) == NOTIFY_STATUS_OK, "register");
    });
    TIMED("cancel it", demand(notify_cancel(tokens[i]) == NOTIFY_STATUS_OK, "cancel"););
    free(tokens);
    puts("every call said what it should");
    return 0;
}
