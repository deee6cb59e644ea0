/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h - notify(3) for Linux: broadcast that something happened, identified only by a name
 *
 * The functions are those of Darwin's <notify.h>; they are in libnotifybus.so:
 *
 *     cc program.c $(pkg-config --cflags --libs notifybus)
 *
 * A name is 1 to 511 bytes of UTF-8 in reverse-DNS style, such as "com.example.backup.done". A post reaches every
 * registration of its name in every process on the bus, including the poster's own. Once a registration has returned
 * NOTIFY_STATUS_OK, every later post is heard. Posts may be coalesced: a notification means that its name was posted at
 * least once.
 *
 *   "self.…"             stays inside the process and needs no bus
 *   "user.uid.N", "user.uid.N.…"   belong to the user with the number N; only that user and root can post them
 *   "com.apple.system.…" and "org.notifybus.system.…" are reserved: on the system bus only root can post them
 *
 * The bus is the user's session bus, unless the environment variable NOTIFYBUS_ADDRESS names another when the first
 * function is called: "session", "system", or a D-Bus address such as "unix:path=/run/example/bus". The variable is
 * ignored in a program that runs with the rights of another user.
 *
 * All functions may be called from any thread; only notify_check(), notify_peek() and notify_is_valid_token() may be
 * called from a signal handler. All return a status unless documented otherwise. If the status is not NOTIFY_STATUS_OK,
 * output arguments are left unchanged, except that a token becomes NOTIFY_TOKEN_INVALID.
 *
 * After fork(2) the child has no registrations. If the parent has used the library, functions that need the bus return
 * NOTIFY_STATUS_OPT_DISABLE in the child until it calls exec(3); "self." names still work.
 *
 * See the manual page notify(3) for more detail.
 */
#ifndef NOTIFYBUS_NOTIFY_H
#define NOTIFYBUS_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#ifndef __swift__
/* Darwin's header brings it, and programs rely on that. Swift's module for it is Glibc. */
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return. */
#define NOTIFY_STATUS_OK 0
#define NOTIFY_STATUS_INVALID_NAME 1      /* the name is NULL, empty, longer than 511 bytes, or not UTF-8 */
#define NOTIFY_STATUS_INVALID_TOKEN 2     /* there is no such registration, or it was cancelled */
#define NOTIFY_STATUS_INVALID_PORT 3      /* there are no Mach ports */
#define NOTIFY_STATUS_INVALID_FILE 4      /* no place for a descriptor, not a descriptor of this library, or a file that can't be watched */
#define NOTIFY_STATUS_INVALID_SIGNAL 5    /* not used here: a signal that does not exist is not sent, as on Darwin */
#define NOTIFY_STATUS_INVALID_REQUEST 6   /* not possible for this token, or not on Linux */
#define NOTIFY_STATUS_NOT_AUTHORIZED 7    /* the name, or the process, belongs to someone else */
#define NOTIFY_STATUS_OPT_DISABLE 8       /* the library is disabled, or this is the child of a process that used it */
#define NOTIFY_STATUS_SERVER_NOT_FOUND 9  /* there is no bus; for state and processes: no lifecycle agent */
#define NOTIFY_STATUS_NULL_INPUT 10       /* a required argument is NULL */
#define NOTIFY_STATUS_FAILED 1000000      /* anything else: memory, descriptors, a bus that does not answer in time */

/* A flag of notify_register_file_descriptor(): deliver through the given descriptor, not a new one. */
#define NOTIFY_REUSE 0x00000001

/* Never a valid token. */
#define NOTIFY_TOKEN_INVALID (-1)

/* Whether a number may be a token; notify_is_valid_token() checks whether it currently is one. */
#define NOTIFY_IS_VALID_TOKEN(token) ((token) >= 0)

/*
 * notify_post() - post a name
 *
 * It does not block: while the bus is busy, posts are queued in the library, and equal ones may be coalesced. It is not
 * an error if nobody has registered for the name. Posts from one thread arrive in order.
 *
 * A program that returns from main() or calls exit(3) first writes queued posts, for one second at most. _exit(2),
 * exec(3) and signals end it immediately, and queued posts are lost.
 *
 * Return: also NOTIFY_STATUS_NOT_AUTHORIZED for a name that belongs to someone else, NOTIFY_STATUS_SERVER_NOT_FOUND if
 * there is no bus, NOTIFY_STATUS_FAILED if 65,536 names are already queued. Nothing was posted then.
 */
uint32_t notify_post(const char *name);

/*
 * notify_register_check() - register for notify_check()
 * @out_token: the token of the registration
 *
 * Return: this and all other registering functions return NOTIFY_STATUS_SERVER_NOT_FOUND if there is no bus, and
 * NOTIFY_STATUS_FAILED if it does not answer within 25 seconds, 10 when connecting, or allows no more registrations.
 */
uint32_t notify_register_check(const char *name, int *out_token);

/*
 * notify_register_signal() - register to be sent a signal, as by kill(getpid(), sig), for each notification
 * @sig: the signal number; nothing is sent if there is no such signal
 *
 * The system coalesces pending signals of the same number.
 */
uint32_t notify_register_signal(const char *name, int sig, int *out_token);

/*
 * notify_register_file_descriptor() - register to be notified through a descriptor
 * @notify_fd: receives a new descriptor; with NOTIFY_REUSE, the descriptor of an earlier registration to use
 * @flags: 0 or NOTIFY_REUSE; other bits have no effect
 *
 * For each notification the token can be read from the descriptor, as four bytes in network byte order; see ntohl(3).
 * If nobody reads and the descriptor is full, each token is kept once and written when there is room. Do not close the
 * descriptor yourself: notify_cancel() of the last token that uses it does. It is closed on exec.
 *
 * Return: also NOTIFY_STATUS_INVALID_FILE if notify_fd is NULL or, with NOTIFY_REUSE, not a descriptor of this library.
 */
uint32_t notify_register_file_descriptor(const char *name, int *notify_fd, int flags, int *out_token);

#ifdef NOTIFYBUS_EXTENSIONS
/*
 * notify_register_callback() - register a function to be called for each notification, on a thread of the library
 * @callback: receives the token, and the context; it may run before this has returned, and out_token is set by then
 * @context: anything, also NULL
 *
 * An extension: Darwin does not have it, so define NOTIFYBUS_EXTENSIONS before including the header. It wakes one thread,
 * where a descriptor wakes two.
 *
 * Callbacks run one at a time for the whole process, with all signals blocked. A callback may call every function, and
 * cancel its own token. It may fork, but the child must not return from it. A slow one delays the others: up to 4,096
 * notifications are queued for each token, and further ones are coalesced. Tokens of other kinds are not delayed, unless
 * their name has more than 16 registrations.
 *
 * Once notify_cancel() has returned, the callback is not running and is never called again, so the context may be freed.
 * So notify_cancel() waits for a callback that is running, except when that callback calls it; do not hold a lock that the
 * callback takes.
 *
 * Return: also NOTIFY_STATUS_NULL_INPUT if the callback is NULL. In a child that can't use the bus (see above) it returns
 * NOTIFY_STATUS_OPT_DISABLE for "self." names too.
 */
uint32_t notify_register_callback(const char *name, int *out_token, void (*callback)(int token, void *context),
                                  void *context);
#endif

/*
 * notify_register_mach_port() - unavailable: Linux has no Mach ports
 *
 * It is declared so that the compiler reports calls to it. notify_register_file_descriptor() does the same for poll(2)
 * and epoll(7). The name is in parentheses so that a program may define a macro of that name. For programs that find it
 * without this header it exists, and returns NOTIFY_STATUS_INVALID_PORT.
 */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
__attribute__((unavailable("Linux has no Mach ports; use notify_register_file_descriptor()")))
#elif defined(__GNUC__)
__attribute__((error("Linux has no Mach ports; use notify_register_file_descriptor()")))
#endif
uint32_t(notify_register_mach_port)(const char *name, void *notify_port, int flags, int *out_token);

/* In Swift the module DarwinNotify has this function, with Swift's queues and closures. */
#if defined(__BLOCKS__) && !defined(__swift__)
/* Included if available, as on Darwin, but not when building the library. */
#if defined(__has_include) && !defined(NOTIFYBUS_WITHOUT_DISPATCH)
#if __has_include(<dispatch/dispatch.h>)
#include <dispatch/dispatch.h>
#define NOTIFYBUS_HAS_DISPATCH 1
#endif
#endif
#ifndef NOTIFYBUS_HAS_DISPATCH
typedef struct dispatch_queue_s *dispatch_queue_t;
#endif

/* What notify_register_dispatch() calls: a block that receives the token of its registration. */
typedef void (^notify_handler_t)(int token);

/*
 * notify_register_dispatch() - register a block to be run on a dispatch queue for each notification
 *
 * For programs compiled with -fblocks. The library has no libdispatch of its own: it uses the program's libdispatch and
 * Blocks runtime, so that the queue never meets a second copy. It retains the queue and copies the block;
 * notify_cancel() releases both. Up to 4,096 notifications are queued individually; further ones are coalesced. The
 * block may cancel its own token. A block that has not started when notify_cancel() returns never will; one that is
 * already running in another thread may still be running.
 *
 * Return: also NOTIFY_STATUS_NULL_INPUT if the queue or the handler is NULL, and NOTIFY_STATUS_INVALID_REQUEST if the
 * program has not loaded libdispatch and the Blocks runtime: link it with -ldispatch -lBlocksRuntime.
 */
uint32_t notify_register_dispatch(const char *name, int *out_token, dispatch_queue_t queue, notify_handler_t handler);
#endif

/*
 * notify_check() - find out whether the name of a token was posted since the last check
 * @check: set to 1 or 0
 *
 * The first check of a token yields 1. It works for every kind of token, even while suspended. It only reads memory,
 * without a system call or a lock, and is safe in a signal handler. It sees posts of this process as soon as
 * notify_post() has returned, and others once the bus has delivered them.
 */
uint32_t notify_check(int token, int *check);

/*
 * notify_cancel() - end a registration
 *
 * Nothing is delivered for the token after this has returned; see notify_register_dispatch(), notify_register_callback()
 * and notify_register_file_descriptor() for what that means for them. Token numbers are never reused.
 */
uint32_t notify_cancel(int token);

/*
 * notify_suspend(), notify_resume() - suspend and resume delivery for a token
 *
 * Calls nest: each notify_suspend() needs a notify_resume(). If the name was posted in the meantime, the last one
 * delivers one notification. Resuming a token that is not suspended does nothing.
 */
uint32_t notify_suspend(int token);
uint32_t notify_resume(int token);

/*
 * notify_set_state(), notify_get_state() - set and get the state of a token's name
 *
 * The state is initially 0, and is forgotten with the last registration of the name in any process. Setting it posts
 * nothing: set, then post. The lifecycle agent keeps it, so notify-agent must be running, except for names that begin
 * with "self.". Both functions wait for the agent, 2 seconds at most.
 *
 * Return: also NOTIFY_STATUS_SERVER_NOT_FOUND if there is no agent, NOTIFY_STATUS_NOT_AUTHORIZED from
 * notify_set_state() for a name that belongs to someone else, NOTIFY_STATUS_FAILED if the agent does not answer.
 */
uint32_t notify_set_state(int token, uint64_t state64);
uint32_t notify_get_state(int token, uint64_t *state64);

/* notify_is_valid_token() - whether a number is currently the token of a registration of this process */
#if defined(__GNUC__) && !defined(__cplusplus)
__extension__ /* C89 has no bool. */
#endif
bool notify_is_valid_token(int val);

#ifdef __cplusplus
}
#endif

#endif
