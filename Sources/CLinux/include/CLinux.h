/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux and GNU calls that Swift's Glibc module does not declare, under names of our own. Each does what the manual
 * page of the call it is named after says.
 */
#ifndef NOTIFYBUS_CLINUX_H
#define NOTIFYBUS_CLINUX_H

#include <signal.h>
#include <stdint.h>
#include <time.h>

#pragma clang assume_nonnull begin

/* linux_eventfd() - eventfd(2): a new one at zero, closed on exec, that does not block */
int linux_eventfd(void);

/* linux_timerfd() - timerfd_create(2): a monotonic one, closed on exec, that blocks */
int linux_timerfd(void);

/* linux_timerfd_fire() - timerfd_settime(2): expire once, after so many nanoseconds */
int linux_timerfd_fire(int timer, int64_t nanoseconds);

/* linux_signalfd() - signalfd(2): a new one, closed on exec, that does not block */
int linux_signalfd(const sigset_t *signals);

/* linux_name_thread() - pthread_setname_np(3) for the calling thread; at most 15 bytes */
void linux_name_thread(const char *name);

/* linux_secure_getenv() - secure_getenv(3) */
const char *_Nullable linux_secure_getenv(const char *name);

#pragma clang assume_nonnull end

#endif
