/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process has the focus on an X display. Compiled with libxcb's own headers; the library is loaded when it is
 * first needed, and not linked: a machine without X has no need of it. One display is used by one thread.
 */
#ifndef NOTIFYBUS_CXCB_H
#define NOTIFYBUS_CXCB_H

#include <stdint.h>

#pragma clang assume_nonnull begin

/* A connection to an X server. */
typedef struct x11_display x11_display;

/* x11_load() - load libxcb; for any thread, any number of times
 *
 * Return: NULL, or what is in the way; it stays valid. */
const char *_Nullable x11_load(void);

/* x11_open() - connect to a display, after x11_load(). Blocks as long as the server takes.
 * @display:  as in $DISPLAY
 *
 * Return: NULL if there is no such display, or it does not let this program in. */
x11_display *_Nullable x11_open(const char *display);

/* x11_close() - disconnect and forget */
void x11_close(x11_display *display);

/* x11_descriptor() - the socket, to wait on; it stays the display's */
int x11_descriptor(x11_display *display);

/* x11_follow() - ask for the changes of _NET_ACTIVE_WINDOW. See Extended Window Manager Hints.
 *
 * Return: 0, or -1 if the connection is gone. */
int x11_follow(x11_display *display);

/* x11_take_events() - read what has come
 *
 * Return: 1 if the active window may be another one, 0 if not, -1 if the connection is gone. */
int x11_take_events(x11_display *display);

/* x11_has_window_manager() - whether somebody keeps _NET_ACTIVE_WINDOW; asks the server */
int x11_has_window_manager(x11_display *display);

/* x11_active_process() - the process of the active window; asks the server
 *
 * By the X-Resource extension, which knows it from the kernel; where the server has none by _NET_WM_PID, which the
 * program sets itself.
 *
 * Return: its process id, 0 if there is no active window or nobody knows whose it is, -1 if the connection is gone. */
int64_t x11_active_process(x11_display *display);

#pragma clang assume_nonnull end

#endif
