/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_private.h - functions that Darwin declares in a header of this name and that programs use
 *
 * They are as stable as those of notify.h.
 */
#ifndef NOTIFYBUS_NOTIFY_PRIVATE_H
#define NOTIFYBUS_NOTIFY_PRIVATE_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of notify_set_options(). The first two are always in effect here; the next two have no effect. */
#define NOTIFY_OPT_DISPATCH 0x00000001 /* deliver on threads of the library's own */
#define NOTIFY_OPT_REGEN 0x00000002    /* register again when the bus comes back */
#define NOTIFY_OPT_FILTERED 0x00000004 /* of Darwin's sandbox */
#define NOTIFY_OPT_OLD_IPC 0x00000008  /* of Darwin's daemon */
#define NOTIFY_OPT_ENABLE 0x04000000
#define NOTIFY_OPT_DISABLE 0x08000000

/* A flag of notify_register_file_descriptor() that has no effect. */
#define NOTIFY_NO_DISPATCH 0x80000000

/*
 * notify_set_options() - disable the library in this process, or enable it again
 *
 * While it is disabled, every function that needs the bus returns NOTIFY_STATUS_OPT_DISABLE. Existing registrations
 * keep delivering, and can be checked, suspended, resumed and cancelled. "self." names work. In the child of a process
 * that has used the library (see notify.h), NOTIFY_OPT_ENABLE has no effect.
 */
void notify_set_options(uint32_t opts);

/* notify_register_plain() - register a name for its state or for notify_monitor_file(); nothing is delivered */
uint32_t notify_register_plain(const char *name, int *out_token);

/*
 * notify_peek() - get a number that changes whenever the name of a token is posted
 *
 * It has no other meaning, and differs between processes. It is as fast and as safe as notify_check().
 *
 * Return: NOTIFY_STATUS_INVALID_REQUEST unless the token is from notify_register_check() or its name begins with
 * "self.".
 */
uint32_t notify_peek(int token, uint32_t *val);

/*
 * notify_monitor_file() - notify a token, and no other of its name, whenever a file changes, until it is cancelled
 * @path: the file; neither it nor its directory needs to exist yet
 * @flags: 0
 *
 * Each creation (including by rename(2) over it), write and removal of the file is one notification. Writes within
 * 50 ms before the file is closed count as one. Symbolic links are followed.
 *
 * Return: NOTIFY_STATUS_INVALID_REQUEST if the path is NULL, the token already monitors a file, or its name begins with
 * "self."; NOTIFY_STATUS_INVALID_FILE if the path ends in "/", "." or "..", is not UTF-8, or
 * can't be watched.
 */
uint32_t notify_monitor_file(int token, const char *path, int flags);

/* notify_simple_post() - the same as notify_post() */
uint32_t notify_simple_post(const char *name);

/*
 * notify_get_event() - does nothing, as on Darwin
 * @ev, @len: set to 0, unless NULL
 * @buf: left unchanged
 */
uint32_t notify_get_event(int token, int *ev, char *buf, int *len);

/*
 * notify_dump_status() - not supported: nothing keeps a list of everybody's registrations
 *
 * "notify-lifecycle list" shows what the lifecycle agent knows.
 *
 * Return: NOTIFY_STATUS_INVALID_REQUEST
 */
uint32_t notify_dump_status(const char *filepath);

/* _notify_fork_child() - does nothing: the library handles the children of fork(2) by itself */
void _notify_fork_child(void);

/*
 * notify_suspend_pid(), notify_resume_pid() - suspend and resume delivery to a process
 *
 * The lifecycle agent does this, for processes of the same user, or of any user for root. On resumption each
 * registration gets one notification if its name was posted in the meantime. The calls do not nest. They wait until the
 * change is in effect.
 *
 * Return: NOTIFY_STATUS_SERVER_NOT_FOUND if there is no agent, NOTIFY_STATUS_INVALID_REQUEST if the process has no
 * registrations, NOTIFY_STATUS_NOT_AUTHORIZED if it is someone else's.
 */
uint32_t notify_suspend_pid(pid_t pid);
uint32_t notify_resume_pid(pid_t pid);

#ifdef __cplusplus
}
#endif

#endif
