/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every function that takes no block, and includes nothing that Darwin's <notify.h> brings. The programs of
 * Scripts/check/dependents have it as a package.
 */
#include <arpa/inet.h>
#include <notify.h>
#include <notify_private.h>
#include <signal.h>
#include <stdio.h>

#define NAME "com.example.every"

/* The header makes calls an error, so programs that still have some find it in this way. */
uint32_t mach_port(const char *name, unsigned *port, int flags, int *out_token) __asm__("notify_register_mach_port");

static int failures;

static void expect(const char *what, uint32_t status, uint32_t expected) {
    if (status == expected) return;
    printf("%s: %u\n", what, (unsigned)status);
    failures += 1;
}

#define EXPECT(call, expected) expect(#call, (call), (expected))

int main(void) {
    int check, file, by_signal, plain, own, token, fd, changed, event = 1, length = 1;
    uint32_t before, after;
    uint64_t state;
    unsigned port;

    signal(SIGUSR1, SIG_IGN);
    EXPECT(notify_register_check(NAME, &check), NOTIFY_STATUS_OK);
    EXPECT(notify_register_file_descriptor(NAME, &fd, 0, &file), NOTIFY_STATUS_OK);
    EXPECT(notify_register_signal(NAME, SIGUSR1, &by_signal), NOTIFY_STATUS_OK);
    EXPECT(notify_register_plain(NAME, &plain), NOTIFY_STATUS_OK);
    EXPECT(notify_register_plain("self.every", &own), NOTIFY_STATUS_OK);
    EXPECT(mach_port(NAME, &port, 0, &token), NOTIFY_STATUS_INVALID_PORT);
    EXPECT(notify_is_valid_token(token), 0);
    EXPECT(notify_is_valid_token(check), 1);

    EXPECT(notify_check(check, &changed), NOTIFY_STATUS_OK);
    EXPECT(notify_peek(check, &before), NOTIFY_STATUS_OK);
    EXPECT(notify_peek(plain, &before), NOTIFY_STATUS_INVALID_REQUEST);
    EXPECT(notify_post(NAME), NOTIFY_STATUS_OK);
    if (read(fd, &token, sizeof token) != sizeof token || (int)ntohl((uint32_t)token) != file) failures += 1;
    EXPECT(notify_check(check, &changed), NOTIFY_STATUS_OK);
    EXPECT((uint32_t)changed, 1);
    EXPECT(notify_peek(check, &after), NOTIFY_STATUS_OK);
    EXPECT(after, before + 1);

    EXPECT(notify_suspend(file), NOTIFY_STATUS_OK);
    EXPECT(notify_simple_post(NAME), NOTIFY_STATUS_OK);
    EXPECT(notify_resume(file), NOTIFY_STATUS_OK);
    if (read(fd, &token, sizeof token) != sizeof token) failures += 1;

    EXPECT(notify_set_state(own, 42), NOTIFY_STATUS_OK);
    EXPECT(notify_get_state(own, &state), NOTIFY_STATUS_OK);
    EXPECT((uint32_t)state, 42);

    EXPECT(notify_monitor_file(plain, "/dev/", 0), NOTIFY_STATUS_INVALID_FILE);
    EXPECT(notify_suspend_pid(0), NOTIFY_STATUS_INVALID_REQUEST);
    EXPECT(notify_resume_pid(0), NOTIFY_STATUS_INVALID_REQUEST);
    EXPECT(notify_get_event(plain, &event, NULL, &length), NOTIFY_STATUS_OK);
    EXPECT((uint32_t)(event + length), 0);
    EXPECT(notify_dump_status("/dev/null"), NOTIFY_STATUS_INVALID_REQUEST);
    _notify_fork_child();
    notify_set_options(NOTIFY_OPT_DISABLE);
    EXPECT(notify_post(NAME), NOTIFY_STATUS_OPT_DISABLE);
    notify_set_options(NOTIFY_OPT_ENABLE);

    EXPECT(notify_cancel(check), NOTIFY_STATUS_OK);
    EXPECT(notify_cancel(file), NOTIFY_STATUS_OK);
    EXPECT(notify_cancel(by_signal), NOTIFY_STATUS_OK);
    EXPECT(notify_cancel(plain), NOTIFY_STATUS_OK);
    EXPECT(notify_cancel(own), NOTIFY_STATUS_OK);
    EXPECT(notify_cancel(own), NOTIFY_STATUS_INVALID_TOKEN);
    /* These come from <unistd.h>, which the program does not include. */
    if (close(dup(STDIN_FILENO)) != 0) failures += 1;
    printf("process %s, failures %d\n", getpid() > 0 ? "known" : "?", failures);
    return failures != 0;
}
