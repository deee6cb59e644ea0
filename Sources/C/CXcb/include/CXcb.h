/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the process that has the focus on an X display. Compiled with libxcb's headers, but not linked with it: libxcb
 * is loaded on demand, so machines without X don't need it. With NOTIFYBUS_LINKS_XCB it is linked, for static programs.
 * Use each display from one thread only.
 */
#ifndef NOTIFYBUS_CXCB_H
#define NOTIFYBUS_CXCB_H

#include <stdint.h>

#pragma clang assume_nonnull begin

/* A connection to an X server. */
typedef struct x11_display x11_display;

/* x11_load() - load libxcb; for any thread, any number of times
 *
 * Return: NULL, or an error message, which stays valid. */
const char *_Nullable x11_load(void);

/* x11_open() - connect to a display, after x11_load(). Blocks until the server answers.
 * @display:  as in $DISPLAY
 *
 * Return: NULL if there is no such display, or it refuses the connection. */
x11_display *_Nullable x11_open(const char *display);

/* x11_close() - disconnect and free */
void x11_close(x11_display *display);

/* x11_descriptor() - the socket, to poll; owned by the display */
int x11_descriptor(x11_display *display);

/* x11_follow() - subscribe to changes of _NET_ACTIVE_WINDOW. See Extended Window Manager Hints.
 * @follows_state: whether to subscribe also to changes of _NET_WM_STATE of the window that it names
 *
 * Return: 0, or -1 if the connection is gone. */
int x11_follow(x11_display *display, int follows_state);

/* x11_take_events() - read pending events
 *
 * Return: 1 if the active window may have changed, 0 if not, -1 if the connection is gone. */
int x11_take_events(x11_display *display);

/* x11_has_window_manager() - whether a window manager maintains _NET_ACTIVE_WINDOW; queries the server */
int x11_has_window_manager(x11_display *display);

/* x11_active_process() - the process of the active window; queries the server
 *
 * Uses the X-Resource extension, which gets it from the kernel, or else _NET_WM_PID, which the program itself sets.
 *
 * Return: its process ID, 0 if there is no active window or its process is unknown, -1 if the connection is gone. */
int64_t x11_active_process(x11_display *display);

/* x11_active_class() - the class of the window that x11_active_process() has found last; queries the server
 *
 * Return: its WM_CLASS, or an empty string; valid until the next call. */
const char *x11_active_class(x11_display *display);

/* x11_active_is_fullscreen() - whether the same window is fullscreen; queries the server */
int x11_active_is_fullscreen(x11_display *display);

#pragma clang assume_nonnull end

#endif
