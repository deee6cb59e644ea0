/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window in X that observes names: x-window TITLE X NAME...
 *
 * X is how far to the right its window stands, in pixels. It says "window ID" when it is seen for the first time, then
 * "observes", then "heard NAME" for each notification. It ends with 0 when the X server goes away, as X clients do.
 */
#define _GNU_SOURCE
#include "observer.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xcb/xcb.h>

enum { SIZE = 100 };

static xcb_connection_t *server;

static void set_text(xcb_window_t window, xcb_atom_t property, const char *text) {
    xcb_change_property(server, XCB_PROP_MODE_REPLACE, window, property, XCB_ATOM_STRING, 8, (uint32_t)strlen(text),
                        text);
}

/* So that those who look at windows know whose it is. See Extended Window Manager Hints, _NET_WM_PID. */
static void set_process(xcb_window_t window) {
    xcb_intern_atom_cookie_t question = xcb_intern_atom(server, 0, strlen("_NET_WM_PID"), "_NET_WM_PID");
    xcb_intern_atom_reply_t *answer = xcb_intern_atom_reply(server, question, NULL);
    if (!answer) fail("The X server does not answer.");
    uint32_t process = (uint32_t)getpid();
    xcb_change_property(server, XCB_PROP_MODE_REPLACE, window, answer->atom, XCB_ATOM_CARDINAL, 32, 1, &process);
    free(answer);
    char machine[256] = "";
    gethostname(machine, sizeof machine - 1);
    set_text(window, XCB_ATOM_WM_CLIENT_MACHINE, machine);
}

/* That the user wants the window at this place. See WM_NORMAL_HINTS in the Inter-Client Communication Conventions. */
static void set_place(xcb_window_t window, uint32_t x) {
    const uint32_t hints[18] = {1 << 0 /* USPosition */, x, 0, SIZE, SIZE};
    xcb_change_property(server, XCB_PROP_MODE_REPLACE, window, XCB_ATOM_WM_NORMAL_HINTS, XCB_ATOM_WM_SIZE_HINTS, 32,
                        sizeof hints / sizeof *hints, hints);
}

int main(int count, char **arguments) {
    if (count < 4) fail("usage: x-window TITLE X NAME...");
    server = xcb_connect(NULL, NULL);
    if (xcb_connection_has_error(server)) fail("There is no X server at $DISPLAY.");
    xcb_screen_t *screen = xcb_setup_roots_iterator(xcb_get_setup(server)).data;
    xcb_window_t window = xcb_generate_id(server);
    uint32_t x = (uint32_t)strtoul(arguments[2], NULL, 10);
    const uint32_t values[] = {screen->white_pixel, XCB_EVENT_MASK_EXPOSURE};
    xcb_create_window(server, XCB_COPY_FROM_PARENT, window, screen->root, (int16_t)x, 0, SIZE, SIZE, 0,
                      XCB_WINDOW_CLASS_INPUT_OUTPUT, screen->root_visual, XCB_CW_BACK_PIXEL | XCB_CW_EVENT_MASK,
                      values);
    set_text(window, XCB_ATOM_WM_NAME, arguments[1]);
    set_process(window);
    set_place(window, x);
    xcb_map_window(server, window);
    xcb_flush(server);

    struct pollfd sources[] = {{xcb_get_file_descriptor(server), POLLIN, 0}, {-1, POLLIN, 0}};
    while (1) {
        xcb_generic_event_t *event;
        while ((event = xcb_poll_for_event(server))) {
            int is_seen = (event->response_type & 0x7f) == XCB_EXPOSE;
            free(event);
            if (!is_seen || sources[1].fd >= 0) continue;
            say("window %u", (unsigned)window);
            sources[1].fd = observer_start(arguments + 3);
        }
        if (xcb_connection_has_error(server)) return 0;
        if (poll(sources, 2, -1) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
        if (sources[1].revents & POLLIN) observer_hear();
    }
}
