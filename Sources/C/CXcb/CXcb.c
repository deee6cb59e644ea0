/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CXcb.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xcb/res.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>

/* The functions used of libxcb.so.1. Of libxcb-res only the header is used: two requests do not justify loading it. */
#define FUNCTIONS(X)                                                                                                   \
    X(connect)                                                                                                         \
    X(disconnect)                                                                                                      \
    X(connection_has_error)                                                                                            \
    X(get_file_descriptor)                                                                                             \
    X(get_setup)                                                                                                       \
    X(setup_roots_iterator)                                                                                            \
    X(screen_next)                                                                                                     \
    X(intern_atom)                                                                                                     \
    X(intern_atom_reply)                                                                                               \
    X(get_property)                                                                                                    \
    X(get_property_reply)                                                                                              \
    X(get_property_value)                                                                                              \
    X(get_property_value_length)                                                                                       \
    X(change_window_attributes)                                                                                        \
    X(get_extension_data)                                                                                              \
    X(send_request)                                                                                                    \
    X(wait_for_reply)                                                                                                  \
    X(poll_for_event)                                                                                                  \
    X(flush)

#ifdef NOTIFYBUS_LINKS_XCB
/* A static program can't load a library, so it includes libxcb. */
#define LINKED(name) .name = &xcb_##name,
#else
#define LINKED(name)
#endif

static struct {
#define DECLARE(name) __typeof__(&xcb_##name) name;
    FUNCTIONS(DECLARE)
#undef DECLARE
} xcb = {FUNCTIONS(LINKED)};

struct x11_display {
    xcb_connection_t *connection;
    xcb_window_t root;
    xcb_atom_t active_window, wm_pid, wm_machine, supporting, wm_state, fullscreen;
    int has_resource, follows_state;
    char host[256];
    /* Of the last active window. */
    xcb_window_t window;
    char class[257];
};

/* libxcb writes to this on first use, under its own lock. */
static xcb_extension_t resource = {"X-Resource", 0};

#ifdef NOTIFYBUS_LINKS_XCB
const char *x11_load(void) { return NULL; }
#else
static const char *failure;

static void load(void) {
    void *library = dlopen("libxcb.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        failure = "libxcb.so.1 is not installed";
        return;
    }
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
#define LIST(name) {"xcb_" #name, &xcb.name},
        FUNCTIONS(LIST)
#undef LIST
    };
    for (size_t index = 0; index < sizeof symbols / sizeof *symbols; index++) {
        void *address = dlsym(library, symbols[index].name);
        if (!address) {
            failure = "libxcb.so.1 is of another version";
            return;
        }
        memcpy(symbols[index].place, &address, sizeof address);
    }
}

const char *x11_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return failure;
}
#endif

/* Queries the X-Resource extension and waits for the reply. @body is whole words; libxcb fills in the first. */
static void *ask_resource(x11_display *display, uint8_t opcode, void *body, size_t size) {
    /* libxcb needs two elements of its own before ours. */
    struct iovec parts[3] = {{0}, {0}, {body, size}};
    const xcb_protocol_request_t request = {1, &resource, opcode, 0};
    unsigned number = xcb.send_request(display->connection, XCB_REQUEST_CHECKED, parts + 2, &request);
    xcb_generic_error_t *error = NULL;
    void *reply = number ? xcb.wait_for_reply(display->connection, number, &error) : NULL;
    free(error);
    return reply;
}

static xcb_atom_t atom(x11_display *display, const char *name) {
    xcb_intern_atom_cookie_t cookie = xcb.intern_atom(display->connection, 0, (uint16_t)strlen(name), name);
    xcb_intern_atom_reply_t *reply = xcb.intern_atom_reply(display->connection, cookie, NULL);
    xcb_atom_t result = reply ? reply->atom : XCB_ATOM_NONE;
    free(reply);
    return result;
}

/* Reads a property of up to 256 bytes; returns its length, or -1 if it is missing or has another format. */
static int property(x11_display *display, xcb_window_t window, xcb_atom_t name, uint8_t format, void *value, int size) {
    xcb_get_property_cookie_t cookie =
        xcb.get_property(display->connection, 0, window, name, XCB_GET_PROPERTY_TYPE_ANY, 0, 64);
    xcb_get_property_reply_t *reply = xcb.get_property_reply(display->connection, cookie, NULL);
    int result = -1;
    /* The length that the server announces must fit the data that it sent. */
    if (reply && reply->type && reply->format == format && reply->value_len <= 256) {
        result = xcb.get_property_value_length(reply);
        if (result > size) result = size;
        if (result > (int)reply->length * 4) result = (int)reply->length * 4;
        memcpy(value, xcb.get_property_value(reply), (size_t)result);
    }
    free(reply);
    return result;
}

static int has_resource(x11_display *display) {
    const xcb_query_extension_reply_t *extension = xcb.get_extension_data(display->connection, &resource);
    if (!extension || !extension->present) return 0;
    /* The request ends in the middle of a word. */
    union {
        xcb_res_query_version_request_t request;
        uint32_t words[2];
    } body = {.request = {.client_major = 1, .client_minor = 2}};
    xcb_res_query_version_reply_t *reply = ask_resource(display, XCB_RES_QUERY_VERSION, &body, sizeof body);
    int result = reply && (reply->server_major > 1 || (reply->server_major == 1 && reply->server_minor >= 2));
    free(reply);
    return result;
}

x11_display *x11_open(const char *name) {
    int number = 0;
    xcb_connection_t *connection = xcb.connect(name, &number);
    x11_display *display = calloc(1, sizeof *display);
    if (!display || xcb.connection_has_error(connection)) goto failed;
    display->connection = connection;
    xcb_screen_iterator_t screens = xcb.setup_roots_iterator(xcb.get_setup(connection));
    for (; screens.rem > 1 && number > 0; number--) xcb.screen_next(&screens);
    if (screens.rem < 1) goto failed;
    display->root = screens.data->root;
    display->active_window = atom(display, "_NET_ACTIVE_WINDOW");
    display->wm_pid = atom(display, "_NET_WM_PID");
    display->wm_machine = atom(display, "WM_CLIENT_MACHINE");
    display->supporting = atom(display, "_NET_SUPPORTING_WM_CHECK");
    display->wm_state = atom(display, "_NET_WM_STATE");
    display->fullscreen = atom(display, "_NET_WM_STATE_FULLSCREEN");
    display->has_resource = has_resource(display);
    gethostname(display->host, sizeof display->host - 1);
    if (!display->active_window || xcb.connection_has_error(connection)) goto failed;
    return display;
failed:
    /* This frees even a connection that failed. */
    xcb.disconnect(connection);
    free(display);
    return NULL;
}

void x11_close(x11_display *display) {
    xcb.disconnect(display->connection);
    free(display);
}

int x11_descriptor(x11_display *display) { return xcb.get_file_descriptor(display->connection); }

/* A window that is gone by now is an error that comes as an event. */
static void follow_properties(x11_display *display, xcb_window_t window, uint32_t events) {
    if (window && window != display->root)
        xcb.change_window_attributes(display->connection, window, XCB_CW_EVENT_MASK, &events);
}

int x11_follow(x11_display *display, int follows_state) {
    const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE;
    display->follows_state = follows_state;
    xcb.change_window_attributes(display->connection, display->root, XCB_CW_EVENT_MASK, &events);
    return xcb.flush(display->connection) > 0 && !xcb.connection_has_error(display->connection) ? 0 : -1;
}

int x11_take_events(x11_display *display) {
    int result = 0;
    xcb_generic_event_t *event;
    while ((event = xcb.poll_for_event(display->connection))) {
        /* The highest bit means that another program sent it. */
        if ((event->response_type & 0x7f) == XCB_PROPERTY_NOTIFY) {
            const xcb_property_notify_event_t *change = (const xcb_property_notify_event_t *)event;
            if (change->window == display->root &&
                (change->atom == display->active_window || change->atom == display->supporting))
                result = 1;
            if (change->window == display->window && change->atom == display->wm_state) result = 1;
        }
        free(event);
    }
    return xcb.connection_has_error(display->connection) ? -1 : result;
}

int x11_has_window_manager(x11_display *display) {
    xcb_window_t window;
    return property(display, display->root, display->active_window, 32, &window, 4) == 4;
}

static int64_t process_by_resource(x11_display *display, xcb_window_t window) {
    struct {
        xcb_res_query_client_ids_request_t request;
        xcb_res_client_id_spec_t spec;
    } body = {{.num_specs = 1}, {window, XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID}};
    struct {
        xcb_res_query_client_ids_reply_t header;
        xcb_res_client_id_value_t value;
        uint32_t process;
    } *reply = ask_resource(display, XCB_RES_QUERY_CLIENT_IDS, &body, sizeof body);
    int64_t result = 0;
    /* The header gives the number of words that follow. */
    if (reply && reply->header.num_ids >= 1 && reply->header.length >= 4 &&
        (reply->value.spec.mask & XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID) && reply->value.length >= 4)
        result = reply->process;
    free(reply);
    return result;
}

static int64_t process_by_property(x11_display *display, xcb_window_t window) {
    char machine[256];
    uint32_t process;
    int length = property(display, window, display->wm_machine, 8, machine, sizeof machine);
    /* A process ID from another machine means nothing here. */
    if (length >= 0 && ((size_t)length != strlen(display->host) || memcmp(machine, display->host, (size_t)length) != 0))
        return 0;
    return property(display, window, display->wm_pid, 32, &process, 4) == 4 ? process : 0;
}

int64_t x11_active_process(x11_display *display) {
    xcb_window_t window = XCB_WINDOW_NONE;
    int64_t process = 0;
    if (property(display, display->root, display->active_window, 32, &window, 4) != 4) window = XCB_WINDOW_NONE;
    if (window != display->window && display->follows_state) {
        follow_properties(display, display->window, 0);
        follow_properties(display, window, XCB_EVENT_MASK_PROPERTY_CHANGE);
    }
    if (window)
        process = display->has_resource ? process_by_resource(display, window) : process_by_property(display, window);
    display->window = window;
    return xcb.connection_has_error(display->connection) ? -1 : process > INT32_MAX ? 0 : process;
}

const char *x11_active_class(x11_display *display) {
    char *class = display->class;
    int length = display->window ? property(display, display->window, XCB_ATOM_WM_CLASS, 8, class, 256) : -1;
    class[length > 0 ? length : 0] = 0;
    /* The name of the instance comes first. */
    size_t first = strlen(class);
    return length > 0 && (int)first + 1 < length ? class + first + 1 : class;
}

int x11_active_is_fullscreen(x11_display *display) {
    uint32_t states[64];
    int length =
        display->window ? property(display, display->window, display->wm_state, 32, states, sizeof states) : -1;
    for (int index = 0; index < length / 4; index++)
        if (states[index] == display->fullscreen) return 1;
    return 0;
}
