/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux and GNU calls that Swift's Glibc module does not declare, under names of our own. Each does what the manual
 * page of the call it is named after says.
 */
#ifndef NOTIFYBUS_CLINUX_H
#define NOTIFYBUS_CLINUX_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
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

/* What linux_epoll_wait() reports: the events of epoll_ctl(2), and the number that the descriptor was added with. */
typedef struct linux_event {
    uint32_t events;
    uint64_t number;
} linux_event;

/* linux_epoll() - epoll_create1(2): a new one, closed on exec */
int linux_epoll(void);

/* linux_epoll_add(), _change(), _remove() - epoll_ctl(2); errors and hang-ups are reported even for no events */
int linux_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t number);
int linux_epoll_change(int epoll, int descriptor, uint32_t events, uint64_t number);
int linux_epoll_remove(int epoll, int descriptor);

/* linux_epoll_wait() - epoll_wait(2) without a time limit; at most 64 events at once */
int linux_epoll_wait(int epoll, linux_event *events, int count);

/* linux_pidfd_open() - pidfd_open(2): closed on exec, readable when the process has ended; Linux 5.3 and later */
int linux_pidfd_open(pid_t process);

/* linux_pidfd_signal() - pidfd_send_signal(2): never hits a process that came later */
int linux_pidfd_signal(int pidfd, int signal);

/* linux_getxattr() - getxattr(2) */
long linux_getxattr(const char *path, const char *name, void *value, size_t size);

/* linux_connect_unix() - socket(2) and connect(2) to a stream socket by its path: closed on exec, never blocks, so a
 * listener with a full queue is an error. See unix(7). */
int linux_connect_unix(const char *path);

#pragma clang assume_nonnull end

#endif
