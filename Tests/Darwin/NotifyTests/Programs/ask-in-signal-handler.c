/* SPDX-License-Identifier: Apache-2.0 */
/* Asks in a signal handler that interrupts the first call, inside a function that replaces libc's for the library. */
#define _GNU_SOURCE
#include <notify.h>
#include <notify_private.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int token = NOTIFY_TOKEN_INVALID, interruptions;

static void ask(int signal) {
    int check;
    uint32_t posts;
    (void)signal;
    interruptions++;
    for (int number = token; number <= 1; number++) {
        if (notify_is_valid_token(number)) _exit(1);
        if (notify_check(number, &check) != NOTIFY_STATUS_INVALID_TOKEN) _exit(2);
        if (notify_peek(number, &posts) != NOTIFY_STATUS_INVALID_TOKEN) _exit(3);
    }
}

int pipe2(int ends[2], int flags) {
    if (token == NOTIFY_TOKEN_INVALID) raise(SIGUSR1);
    return (int)syscall(SYS_pipe2, ends, flags);
}

int main(void) {
    int check = 0;
    alarm(20);
    signal(SIGUSR1, ask);
    unsigned int registered = notify_register_check("self.first", &token);
    notify_check(token, &check);
    printf("%u %d %d\n", registered, check, interruptions > 0);
    return 0;
}
