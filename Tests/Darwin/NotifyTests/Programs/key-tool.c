/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool in the manner of Darwin's notifyutil: its arguments are done in order.
 *
 *   -p NAME        post               -N              how often each of the next registrations tells, 1 if not given
 *   -c NAME        register to check  -f NAME         register a descriptor
 *   -S NAME        register a signal  -d NAME         register a block
 *   -m NAME        register a port    -s NAME STATE   set a state
 *   -g NAME        print the state    -z PID          suspend and resume a process
 *   -o             disable and enable the library
 *
 * At the end it prints what comes until each registration has told as often as it should.
 */
#include <errno.h>
#include <mach/mach.h>
#include <notify.h>
#include <notify_keys.h>
#include <notify_private.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 32 };

static struct watch {
    const char *name;
    enum { CHECK, DESCRIPTOR, SIGNAL, BLOCK } kind;
    int token, rest;
    dispatch_source_t source;
} watches[MOST];
static int watch_count, descriptor = -1;

static void complain(const char *what, const char *name, uint32_t status) {
    fprintf(stderr, "%s %s: %u\n", what, name, status);
    exit(1);
}

static void demand(const char *what, const char *name, uint32_t status) {
    if (status != NOTIFY_STATUS_OK) complain(what, name, status);
}

static void told(struct watch *watch) {
    printf("%s\n", watch->name);
    fflush(stdout);
    if (--watch->rest == 0) demand("cancel", watch->name, notify_cancel(watch->token));
}

/* With the main queue, on which it runs. */
static void end_if_done(void) {
    for (int i = 0; i < watch_count; i++)
        if (watches[i].rest > 0) return;
    exit(0);
}

static void told_on_queue(struct watch *watch) {
    if (watch->rest > 0) told(watch);
    end_if_done();
}

static struct watch *add(const char *name, int kind, int times) {
    if (watch_count == MOST) exit(1);
    struct watch *watch = &watches[watch_count++];
    watch->name = name;
    watch->kind = kind;
    watch->rest = times;
    return watch;
}

int main(int argc, char **argv) {
    int times = 1;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *name = i + 1 < argc ? argv[i + 1] : "";
        if (option[0] != '-') return 64;
        if (option[1] >= '0' && option[1] <= '9') {
            times = atoi(option + 1);
            continue;
        }
        if (option[1] != 'o') i++;
        int token;
        uint64_t state;
        switch (option[1]) {
        case 'p': demand("post", name, notify_post(name)); break;
        case 'c': {
            struct watch *watch = add(name, CHECK, times);
            int check;
            demand("check", name, notify_register_check(name, &watch->token));
            /* The first check says 1 whatever was posted. */
            demand("check", name, notify_check(watch->token, &check));
            if (!check) return 2;
            break;
        }
        case 'f': {
            struct watch *watch = add(name, DESCRIPTOR, times);
            int flags = descriptor < 0 ? 0 : NOTIFY_REUSE;
            demand("descriptor", name, notify_register_file_descriptor(name, &descriptor, flags, &watch->token));
            break;
        }
        case 'S': {
            struct watch *watch = add(name, SIGNAL, times);
            dispatch_source_t *source = &watch->source;
            *source = dispatch_source_create(DISPATCH_SOURCE_TYPE_SIGNAL, SIGUSR1, 0, dispatch_get_main_queue());
            signal(SIGUSR1, SIG_IGN);
            dispatch_source_set_event_handler(*source, ^{ told_on_queue(watch); });
            dispatch_resume(*source);
            demand("signal", name, notify_register_signal(name, SIGUSR1, &watch->token));
            break;
        }
        case 'd': {
            struct watch *watch = add(name, BLOCK, times);
            demand("block", name, notify_register_dispatch(name, &watch->token, dispatch_get_main_queue(), ^(int from) {
                       if (from == watch->token) told_on_queue(watch);
                   }));
            break;
        }
        case 'm': {
            mach_port_t port = MACH_PORT_NULL;
            uint32_t status = notify_register_mach_port(name, &port, 0, &token);
            printf("port %u %d\n", status, token == NOTIFY_TOKEN_INVALID);
            break;
        }
        case 's':
            if (i + 1 >= argc) return 64;
            demand("plain", name, notify_register_plain(name, &token));
            demand("state", name, notify_set_state(token, strtoull(argv[++i], NULL, 0)));
            break;
        case 'g':
            demand("plain", name, notify_register_plain(name, &token));
            demand("state", name, notify_get_state(token, &state));
            printf("%s %llu\n", name, (unsigned long long)state);
            demand("cancel", name, notify_cancel(token));
            break;
        case 'z':
            demand("suspend", name, notify_suspend_pid(atoi(name)));
            demand("resume", name, notify_resume_pid(atoi(name)));
            break;
        case 'o':
            notify_set_options(NOTIFY_OPT_DISABLE);
            printf("disabled %u\n", notify_post(kNotifyTimeZoneChange));
            notify_set_options(NOTIFY_OPT_ENABLE);
            break;
        default: return 64;
        }
    }
    printf("ready\n");
    fflush(stdout);

    // Static, so that a leak checker still finds them at the end.
    static dispatch_source_t readable, timer;
    if (descriptor >= 0) {
        readable =
            dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)descriptor, 0, dispatch_get_main_queue());
        dispatch_source_set_event_handler(readable, ^{
            int sent;
            if (read(descriptor, &sent, sizeof sent) != sizeof sent) exit(3);
            sent = (int)__builtin_bswap32((unsigned)sent);
            for (int i = 0; i < watch_count; i++)
                if (watches[i].kind == DESCRIPTOR && watches[i].token == sent) told(&watches[i]);
            end_if_done();
        });
        dispatch_resume(readable);
    }
    /* Those that are looked at, ten times a second. */
    timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, dispatch_get_main_queue());
    dispatch_source_set_timer(timer, DISPATCH_TIME_NOW, 100 * NSEC_PER_MSEC, 0);
    dispatch_source_set_event_handler(timer, ^{
        for (int i = 0; i < watch_count; i++) {
            int check = 0;
            if (watches[i].kind != CHECK || watches[i].rest <= 0) continue;
            demand("check", watches[i].name, notify_check(watches[i].token, &check));
            if (check) told(&watches[i]);
        }
        end_if_done();
    });
    dispatch_resume(timer);
    dispatch_main();
}
