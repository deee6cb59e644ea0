/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CBridgeLinux.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

int bridge_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int bridge_signalfd(const sigset_t *signals) {
    return signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int bridge_signal(int descriptor) {
    struct signalfd_siginfo signal;
    return read(descriptor, &signal, sizeof signal) == sizeof signal ? (int)signal.ssi_signo : 0;
}

void bridge_name_thread(const char *name) {
    pthread_setname_np(pthread_self(), name);
}
