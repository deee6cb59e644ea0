/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux and GNU calls that Swift's Glibc module does not declare, under names of our own. Each behaves as the manual
 * page of its namesake says.
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

/* linux_memfd() - memfd_create(2): closed on exec */
int linux_memfd(const char *name);

/* linux_eventfd() - eventfd(2): non-blocking, closed on exec, initially zero */
int linux_eventfd(void);

/* linux_pipe() - pipe2(2): both ends closed on exec; the write end, the second, does not block */
int linux_pipe(int ends[_Nonnull 2]);

/* linux_timerfd() - timerfd_create(2): monotonic, non-blocking, closed on exec */
int linux_timerfd(void);

/* linux_timerfd_fire() - timerfd_settime(2): expire once, after a number of nanoseconds */
int linux_timerfd_fire(int timer, int64_t nanoseconds);

/* linux_dump_no_core() - prctl(2), PR_SET_DUMPABLE: a crash leaves no core, and no other process may look into it */
void linux_dump_no_core(void);

/* linux_clock_timer(), linux_clock_timer_arm() - timerfd_create(2), timerfd_settime(2): a timer of the wall clock that
 * does not block or fire, and is cancelled when that clock is set */
int linux_clock_timer(void);
int linux_clock_timer_arm(int timer);

/* linux_route_socket() - rtnetlink(7): a new non-blocking socket, closed on exec, that receives changes of links,
 * addresses and routes. With @listens false, a blocking one for requests. */
int linux_route_socket(bool listens);

/* linux_route_ask() - rtnetlink(7): request a dump, for example with RTM_GETLINK */
int linux_route_ask(int socket, uint16_t request);

/* linux_signalfd() - signalfd(2): non-blocking, closed on exec */
int linux_signalfd(const sigset_t *signals);

/* linux_name_thread() - pthread_setname_np(3) for the calling thread; at most 15 bytes */
void linux_name_thread(const char *name);

/* linux_lock_until() - pthread_mutex_clocklock(3) with the monotonic clock */
int linux_lock_until(pthread_mutex_t *mutex, const struct timespec *deadline);

/* linux_program() - the path that the kernel was asked to run, which may be a link: AT_EXECFN of getauxval(3)
 *
 * Return: NULL where the kernel does not say. */
const char *_Nullable linux_program(void);

/* linux_commit() - the commit that a program is made of, as the Makefile has told the linker: see COMMIT there
 *
 * Return: its first digits and one more, which is 1 if there were changes since; 0 if the linker was told nothing. */
uint64_t linux_commit(void);

/* linux_secure_getenv() - secure_getenv(3) */
const char *_Nullable linux_secure_getenv(const char *name);

/* What linux_epoll_wait() reports: events as in epoll_ctl(2), and the number passed when the descriptor was added. */
typedef struct linux_event {
    uint32_t events;
    uint64_t number;
} linux_event;

/* linux_epoll() - epoll_create1(2): closed on exec */
int linux_epoll(void);

/* linux_epoll_add(), _change(), _remove() - epoll_ctl(2); errors and hang-ups are reported even without any events */
int linux_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t number);
int linux_epoll_change(int epoll, int descriptor, uint32_t events, uint64_t number);
int linux_epoll_remove(int epoll, int descriptor);

/* linux_epoll_wait() - epoll_wait(2), in milliseconds or -1 without a time limit; at most 64 events at once */
int linux_epoll_wait(int epoll, linux_event *events, int count, int timeout);

/* linux_pidfd_open() - pidfd_open(2): closed on exec, readable when the process has ended; Linux 5.3 and later */
int linux_pidfd_open(pid_t process);

/* linux_pidfd_signal() - pidfd_send_signal(2): never reaches a later process with the same ID */
int linux_pidfd_signal(int pidfd, int signal);

/* A command with its keeper, a process that exits when all that the command has started has ended. */
typedef struct linux_kept {
    pid_t keeper;  /* our child, to be waited for */
    pid_t command; /* also its process group */
    int result;    /* non-blocking: once the keeper has exited, the command's status as by waitpid(2), an int */
} linux_kept;

/*
 * linux_start_kept() - execvpe(3) in a new process, in a process group of its own, under a keeper
 * @arguments: the command's; ends with NULL
 * @environment: the same
 * @has_no_input: whether it reads /dev/null
 *
 * The command has no signal blocked, and SIGPIPE is not ignored. Processes that it leaves behind when it ends, also in
 * another session, become the keeper's children: see PR_SET_CHILD_SUBREAPER in prctl(2).
 *
 * Return: 0, or an error number if it can't be executed.
 */
int linux_start_kept(char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
                     bool has_no_input, linux_kept *kept);

/* linux_getxattr() - getxattr(2) */
long linux_getxattr(const char *path, const char *name, void *value, size_t size);

/* linux_connect_unix() - socket(2) and connect(2) to a stream socket by its path: closed on exec, never blocks, so a
 * full backlog is an error. See unix(7). */
int linux_connect_unix(const char *path);

/* LINUX_MAX_DESCRIPTORS - the most that one message may carry: see unix(7), SCM_RIGHTS */
enum { LINUX_MAX_DESCRIPTORS = 253 };

/*
 * linux_receive() - recvmsg(2) without blocking, with the descriptors that the message carries
 * @descriptors: room for LINUX_MAX_DESCRIPTORS; they are closed on exec. NULL has the kernel drop them
 * @count: set to their number; fewer than were sent if this process can open no more
 */
long linux_receive(int socket, void *buffer, size_t size, int *_Nullable descriptors, int *count);

/* linux_send() - send(2) or sendmsg(2) without blocking or SIGPIPE, with at most LINUX_MAX_DESCRIPTORS descriptors */
long linux_send(int socket, const void *bytes, size_t size, const int *_Nullable descriptors, int count);

#pragma clang assume_nonnull end

/* linux_give_memory_back() - malloc_trim(3): return memory that the allocator keeps to the kernel */
void linux_give_memory_back(void);

/* linux_keep_little_memory() - mallopt(3): keep no more than 128 kB unused at the end of each arena
 *
 * The allocator otherwise raises this threshold, and the size from which a block is a mapping of its own, with the largest
 * block that is freed. malloc_trim(3) gives back only the end of the first arena. */
void linux_keep_little_memory(void);

#endif
