/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of CLinux.h. */

#define _GNU_SOURCE
#include "CLinux.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

int linux_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int linux_timerfd(void) {
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

int linux_timerfd_fire(int timer, int64_t nanoseconds) {
    struct itimerspec setting = {
        .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000},
    };
    return timerfd_settime(timer, 0, &setting, NULL);
}

int linux_signalfd(const sigset_t *signals) {
    return signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

void linux_name_thread(const char *name) {
    pthread_setname_np(pthread_self(), name);
}

const char *linux_secure_getenv(const char *name) {
    return secure_getenv(name);
}
