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

/* What is used of libxcb.so.1, whose binary interface <xcb/xcb.h> and <xcb/xcbext.h> describe. */
typedef struct xcb_connection xcb_connection;
typedef struct {
    const char *name;
    int global_id;
} xcb_extension;
typedef struct {
    size_t count;
    xcb_extension *extension;
    uint8_t opcode;
    uint8_t is_void;
} xcb_protocol_request;
typedef struct {
    uint8_t response_type, pad, sequence_low, sequence_high;
    uint32_t length;
    uint8_t present, major_opcode, first_event, first_error;
} xcb_extension_reply;
typedef struct {
    uint32_t *data;
    int rest, index;
} xcb_screen_iterator;

static struct {
    xcb_connection *(*connect)(const char *, int *);
    void (*disconnect)(xcb_connection *);
    int (*connection_has_error)(xcb_connection *);
    int (*get_file_descriptor)(xcb_connection *);
    const void *(*get_setup)(xcb_connection *);
    xcb_screen_iterator (*setup_roots_iterator)(const void *);
    void (*screen_next)(xcb_screen_iterator *);
    const xcb_extension_reply *(*get_extension_data)(xcb_connection *, xcb_extension *);
    unsigned (*send_request)(xcb_connection *, int, struct iovec *, const xcb_protocol_request *);
    void *(*wait_for_reply)(xcb_connection *, unsigned, void **);
    uint8_t *(*poll_for_event)(xcb_connection *);
    int (*flush)(xcb_connection *);
} xcb;

struct x11_display {
    xcb_connection *connection;
    uint32_t root;
    uint32_t active_window, wm_pid, wm_machine, supporting;
    int has_resource;
    char host[256];
};

/* The X protocol's numbers. */
enum { CHANGE_WINDOW_ATTRIBUTES = 2, INTERN_ATOM = 16, GET_PROPERTY = 20, PROPERTY_NOTIFY = 28 };
enum { CW_EVENT_MASK = 1 << 11, PROPERTY_CHANGE_MASK = 1 << 22 };
enum { RESOURCE_QUERY_VERSION = 0, RESOURCE_QUERY_CLIENT_IDS = 4, LOCAL_CLIENT_PID = 2 };

/* libxcb writes into this when the extension is first asked for; only under its own lock. */
static xcb_extension resource = {"X-Resource", 0};

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
        {"xcb_connect", &xcb.connect},
        {"xcb_disconnect", &xcb.disconnect},
        {"xcb_connection_has_error", &xcb.connection_has_error},
        {"xcb_get_file_descriptor", &xcb.get_file_descriptor},
        {"xcb_get_setup", &xcb.get_setup},
        {"xcb_setup_roots_iterator", &xcb.setup_roots_iterator},
        {"xcb_screen_next", &xcb.screen_next},
        {"xcb_get_extension_data", &xcb.get_extension_data},
        {"xcb_send_request", &xcb.send_request},
        {"xcb_wait_for_reply", &xcb.wait_for_reply},
        {"xcb_poll_for_event", &xcb.poll_for_event},
        {"xcb_flush", &xcb.flush},
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

/* Sends a request of whole words, whose first two bytes but the data byte libxcb fills in, and waits for the reply. */
static void *ask(x11_display *display, uint8_t opcode, xcb_extension *extension, void *body, size_t size) {
    /* libxcb wants two parts before ours for itself. */
    struct iovec parts[3] = {{0}, {0}, {body, size}};
    const xcb_protocol_request request = {1, extension, opcode, 0};
    unsigned number = xcb.send_request(display->connection, 1 /* checked */, parts + 2, &request);
    void *error = NULL;
    void *reply = number ? xcb.wait_for_reply(display->connection, number, &error) : NULL;
    free(error);
    return reply;
}

static uint32_t atom(x11_display *display, const char *name) {
    struct {
        uint8_t opcode, only_if_exists;
        uint16_t length, name_length, pad;
        char name[32];
    } body = {.name_length = (uint16_t)strlen(name)};
    strncpy(body.name, name, sizeof body.name - 1);
    uint32_t *reply = ask(display, INTERN_ATOM, NULL, &body, 8 + (strlen(name) + 3) / 4 * 4);
    uint32_t result = reply ? reply[2] : 0;
    free(reply);
    return result;
}

/* Reads a property of at most 256 bytes; returns how many bytes it has, or -1 if it is not there or not of this format. */
static int property(x11_display *display, uint32_t window, uint32_t name, uint8_t format, void *value, int size) {
    struct {
        uint8_t opcode, remove;
        uint16_t length;
        uint32_t window, property, type, offset, count;
    } body = {.window = window, .property = name, .count = 64};
    struct {
        uint8_t response_type, format;
        uint16_t sequence;
        uint32_t length, type, after, count;
        uint8_t pad[12];
    } *reply = ask(display, GET_PROPERTY, NULL, &body, sizeof body);
    int result = -1;
    if (reply && reply->type && reply->format == format && reply->count <= 256) {
        result = (int)(reply->count * (format / 8));
        if (result > size) result = size;
        if (result > (int)reply->length * 4) result = (int)reply->length * 4;
        memcpy(value, reply + 1, (size_t)result);
    }
    free(reply);
    return result;
}

static int has_resource(x11_display *display) {
    const xcb_extension_reply *extension = xcb.get_extension_data(display->connection, &resource);
    if (!extension || !extension->present) return 0;
    struct {
        uint8_t opcode, minor;
        uint16_t length;
        uint8_t major_version, minor_version;
        uint16_t pad;
    } body = {.major_version = 1, .minor_version = 2};
    uint16_t *reply = ask(display, RESOURCE_QUERY_VERSION, &resource, &body, sizeof body);
    int result = reply && (reply[4] > 1 || (reply[4] == 1 && reply[5] >= 2));
    free(reply);
    return result;
}

x11_display *x11_open(const char *name) {
    int number = 0;
    xcb_connection *connection = xcb.connect(name, &number);
    x11_display *display = calloc(1, sizeof *display);
    if (!display || xcb.connection_has_error(connection)) goto failed;
    display->connection = connection;
    xcb_screen_iterator screens = xcb.setup_roots_iterator(xcb.get_setup(connection));
    for (; screens.rest > 1 && number > 0; number--) xcb.screen_next(&screens);
    if (screens.rest < 1) goto failed;
    display->root = screens.data[0];
    display->active_window = atom(display, "_NET_ACTIVE_WINDOW");
    display->wm_pid = atom(display, "_NET_WM_PID");
    display->wm_machine = atom(display, "WM_CLIENT_MACHINE");
    display->supporting = atom(display, "_NET_SUPPORTING_WM_CHECK");
    display->has_resource = has_resource(display);
    gethostname(display->host, sizeof display->host - 1);
    if (!display->active_window || xcb.connection_has_error(connection)) goto failed;
    return display;
failed:
    /* Also what could not connect is freed by this. */
    xcb.disconnect(connection);
    free(display);
    return NULL;
}

void x11_close(x11_display *display) {
    xcb.disconnect(display->connection);
    free(display);
}

int x11_descriptor(x11_display *display) {
    return xcb.get_file_descriptor(display->connection);
}

int x11_follow(x11_display *display) {
    struct {
        uint8_t opcode, pad;
        uint16_t length;
        uint32_t window, mask, events;
    } body = {.window = display->root, .mask = CW_EVENT_MASK, .events = PROPERTY_CHANGE_MASK};
    struct iovec parts[3] = {{0}, {0}, {&body, sizeof body}};
    const xcb_protocol_request request = {1, NULL, CHANGE_WINDOW_ATTRIBUTES, 1};
    xcb.send_request(display->connection, 0, parts + 2, &request);
    return xcb.flush(display->connection) > 0 && !xcb.connection_has_error(display->connection) ? 0 : -1;
}

int x11_take_events(x11_display *display) {
    int result = 0;
    uint8_t *event;
    while ((event = xcb.poll_for_event(display->connection))) {
        uint32_t words[3];
        memcpy(words, event, sizeof words);
        if ((event[0] & 0x7f) == PROPERTY_NOTIFY && words[1] == display->root &&
            (words[2] == display->active_window || words[2] == display->supporting))
            result = 1;
        free(event);
    }
    return xcb.connection_has_error(display->connection) ? -1 : result;
}

int x11_has_window_manager(x11_display *display) {
    uint32_t window;
    return property(display, display->root, display->active_window, 32, &window, 4) == 4;
}

static int64_t process_by_resource(x11_display *display, uint32_t window) {
    struct {
        uint8_t opcode, minor;
        uint16_t length;
        uint32_t count, client, mask;
    } body = {.count = 1, .client = window, .mask = LOCAL_CLIENT_PID};
    /* The header of 8 words, the id asked for, the mask, the number of bytes, the process. */
    uint32_t *reply = ask(display, RESOURCE_QUERY_CLIENT_IDS, &resource, &body, sizeof body);
    int64_t result = 0;
    if (reply && reply[2] >= 1 && reply[1] >= 4 && (reply[9] & LOCAL_CLIENT_PID) && reply[10] >= 4) result = reply[11];
    free(reply);
    return result;
}

static int64_t process_by_property(x11_display *display, uint32_t window) {
    char machine[256];
    uint32_t process;
    int length = property(display, window, display->wm_machine, 8, machine, sizeof machine);
    /* A process of another machine has a number that means another one here. */
    if (length >= 0 && ((size_t)length != strlen(display->host) || memcmp(machine, display->host, (size_t)length) != 0))
        return 0;
    return property(display, window, display->wm_pid, 32, &process, 4) == 4 ? process : 0;
}

int64_t x11_active_process(x11_display *display) {
    uint32_t window = 0;
    int64_t process = 0;
    if (property(display, display->root, display->active_window, 32, &window, 4) == 4 && window)
        process = display->has_resource ? process_by_resource(display, window) : process_by_property(display, window);
    return xcb.connection_has_error(display->connection) ? -1 : process > INT32_MAX ? 0 : process;
}
