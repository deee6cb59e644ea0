/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that reads its configuration again on SIGHUP, and gets that signal for a name as well. */
#include <errno.h>
#include <notify.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t reload;

static void hangup(int number) {
    (void)number;
    reload = 1;
}

int main(void) {
    struct sigaction action = {.sa_handler = hangup};
    sigset_t blocked, before;
    int token;
    sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGHUP);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    if (notify_register_signal("com.example.daemon.reload", SIGHUP, &token) != NOTIFY_STATUS_OK) return 1;
    for (;;) {
        puts("configured");
        fflush(stdout);
        while (!reload) sigsuspend(&before);
        reload = 0;
    }
}
