/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux and GNU calls that Swift's Glibc module does not declare, under names of our own. Each does what the manual
 * page of the call it is named after says.
 */
#ifndef NOTIFYBUS_CLINUX_H
#define NOTIFYBUS_CLINUX_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#pragma clang assume_nonnull begin

/* linux_eventfd() - eventfd(2): a new one at zero, closed on exec, that does not block */
int linux_eventfd(void);

/* linux_pipe() - pipe2(2): both ends closed on exec; the one that is written to, the second, does not block */
int linux_pipe(int ends[_Nonnull 2]);

/* linux_timerfd() - timerfd_create(2): a monotonic one, closed on exec, that blocks */
int linux_timerfd(void);

/* linux_timerfd_fire() - timerfd_settime(2): expire once, after so many nanoseconds */
int linux_timerfd_fire(int timer, int64_t nanoseconds);

/* linux_clock_timer(), linux_clock_timer_arm() - timerfd_create(2), timerfd_settime(2): a timer of the wall clock that
 * does not block or fire, and is cancelled when that clock is set */
int linux_clock_timer(void);
int linux_clock_timer_arm(int timer);

/* linux_route_socket() - rtnetlink(7): a new socket, closed on exec, that hears changes of links, addresses and routes;
 * it does not block. With @listens false, one to ask with, which blocks. */
int linux_route_socket(bool listens);

/* linux_route_ask() - rtnetlink(7): ask for all of what a request such as RTM_GETLINK means */
int linux_route_ask(int socket, uint16_t request);

/* linux_signalfd() - signalfd(2): a new one, closed on exec, that does not block */
int linux_signalfd(const sigset_t *signals);

/* linux_name_thread() - pthread_setname_np(3) for the calling thread; at most 15 bytes */
void linux_name_thread(const char *name);

/*
 * A lock, and what to wait for with it; all zero when nobody has it. See futex(2), and Drepper, "Futexes Are Tricky",
 * whose third mutex it is. Neither lock() nor unlock() leaves the program while no other thread wants it, and they are
 * compiled into the caller: 12 instructions for both, where those of pthread_mutex_lock(3) are 87.
 */
typedef struct linux_lock {
    /* 0: free; 1: taken; 2: taken, and somebody may sleep until it is free */
    uint32_t state;
    /* counts linux_wake_all() */
    uint32_t turn;
    /* how many threads are in linux_wait(); changed by who has the lock */
    uint32_t waiting;
} linux_lock;

/* The rest of linux_take() and linux_give(), for when another thread wants the lock too. */
void linux_take_slowly(linux_lock *lock);
void linux_give_slowly(linux_lock *lock);

/* linux_take() - takes the lock, and sleeps until it is free */
static inline void linux_take(linux_lock *lock) {
    uint32_t expected = 0;
    if (!__atomic_compare_exchange_n(&lock->state, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        linux_take_slowly(lock);
}

/* linux_give() - gives the lock back */
static inline void linux_give(linux_lock *lock) {
    if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) != 1) linux_give_slowly(lock);
}

/* linux_take_until() - takes the lock, unless it is not to be had before a time: nanoseconds of the monotonic clock */
bool linux_take_until(linux_lock *lock, int64_t deadline);

/*
 * linux_wait() - gives the lock back, sleeps until linux_wake_all() or a time, -1 for none, and takes the lock again;
 * false if the time has come. It may return early.
 */
bool linux_wait(linux_lock *lock, int64_t deadline);

/* linux_wake_all() - ends every linux_wait(); no system call if there is none. To be called after giving the lock back. */
void linux_wake_all(linux_lock *lock);

/*
 * linux_arguments() - the arguments of this process as the kernel handed them over, ending with NULL
 *
 * Swift's CommandLine reads /proc/self/cmdline, and finds none where /proc is not mounted.
 */
char *_Nullable *_Nonnull linux_arguments(void);

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

/*
 * linux_close_in_child(), linux_keep_in_child() - have a descriptor closed in the child of fork(2), or no more
 * @is_bus: whether it is the socket of a bus
 *
 * For sockets that parent and child cannot share: what one writes or reads would be the other's. Call the second before
 * the descriptor is closed. The first returns false when memory ran out.
 */
bool linux_close_in_child(int descriptor, bool is_bus);
void linux_keep_in_child(int descriptor);

/* linux_is_cut_off() - whether this is the child of a process that had a connection to a bus, and has not called exec */
bool linux_is_cut_off(void);

/* linux_getxattr() - getxattr(2) */
long linux_getxattr(const char *path, const char *name, void *value, size_t size);

/* linux_connect_unix() - socket(2) and connect(2) to a stream socket by its path: closed on exec, never blocks, so a
 * listener with a full queue is an error. See unix(7). */
int linux_connect_unix(const char *path);

/* LINUX_MAX_DESCRIPTORS - as many may come with the bytes of one message: see unix(7), SCM_RIGHTS */
enum { LINUX_MAX_DESCRIPTORS = 253 };

/*
 * linux_receive() - recvmsg(2) without waiting, with the descriptors that come along
 * @descriptors: room for LINUX_MAX_DESCRIPTORS, which are closed on exec; NULL to have the kernel drop them
 * @count: becomes how many there are; fewer than were sent when this process may open no more
 */
long linux_receive(int socket, void *buffer, size_t size, int *_Nullable descriptors, int *count);

/* linux_send() - sendmsg(2) without waiting and without SIGPIPE, with at most LINUX_MAX_DESCRIPTORS descriptors */
long linux_send(int socket, const void *bytes, size_t size, const int *_Nullable descriptors, int count);

#pragma clang assume_nonnull end

/* linux_give_memory_back() - malloc_trim(3): what the allocator keeps for later goes back to the kernel */
void linux_give_memory_back(void);

#endif
