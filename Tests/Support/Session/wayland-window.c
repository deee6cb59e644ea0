/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window in Wayland that observes names: wayland-window TITLE NAME...
 *
 * It says "window" when it is on the screen, then "observes", then "heard NAME" for each notification. It ends with 0
 * when the compositor goes away.
 */
#define _GNU_SOURCE
#include "observer.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wayland-client.h>

#include "xdg-shell.h"

static struct wl_compositor *compositor;
static struct wl_shm *memory;
static struct xdg_wm_base *base;
static struct wl_surface *surface;
static int32_t width, height;
static int is_configured;

static void found(void *data, struct wl_registry *registry, uint32_t name, const char *interface, uint32_t version) {
    (void)data, (void)version;
    if (!strcmp(interface, wl_compositor_interface.name))
        compositor = wl_registry_bind(registry, name, &wl_compositor_interface, 1);
    else if (!strcmp(interface, wl_shm_interface.name))
        memory = wl_registry_bind(registry, name, &wl_shm_interface, 1);
    else if (!strcmp(interface, xdg_wm_base_interface.name))
        base = wl_registry_bind(registry, name, &xdg_wm_base_interface, 1);
}

static void lost(void *data, struct wl_registry *registry, uint32_t name) { (void)data, (void)registry, (void)name; }

static void pinged(void *data, struct xdg_wm_base *base, uint32_t serial) {
    (void)data;
    xdg_wm_base_pong(base, serial);
}

static void resized(void *data, struct xdg_toplevel *toplevel, int32_t w, int32_t h, struct wl_array *states) {
    (void)data, (void)toplevel, (void)states;
    width = w > 0 ? w : 64;
    height = h > 0 ? h : 64;
}

static void closed(void *data, struct xdg_toplevel *toplevel) {
    (void)data, (void)toplevel;
    _exit(0);
}

/* Shows something of the size that the compositor wants: until then a window is not on the screen. */
static void configured(void *data, struct xdg_surface *role, uint32_t serial) {
    (void)data;
    int32_t size = width * height * 4;
    int file = memfd_create("picture", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, size)) fail("No memory for a picture: %s", strerror(errno));
    struct wl_shm_pool *pool = wl_shm_create_pool(memory, file, size);
    struct wl_buffer *picture = wl_shm_pool_create_buffer(pool, 0, width, height, width * 4, WL_SHM_FORMAT_XRGB8888);
    wl_shm_pool_destroy(pool);
    close(file);
    xdg_surface_ack_configure(role, serial);
    wl_surface_attach(surface, picture, 0, 0);
    wl_surface_commit(surface);
    is_configured = 1;
}

static const struct wl_registry_listener registry_listener = {found, lost};
static const struct xdg_wm_base_listener base_listener = {.ping = pinged};
static const struct xdg_surface_listener role_listener = {.configure = configured};
static const struct xdg_toplevel_listener toplevel_listener = {.configure = resized, .close = closed};

int main(int count, char **arguments) {
    if (count < 3) fail("usage: wayland-window TITLE NAME...");
    struct wl_display *server = wl_display_connect(NULL);
    if (!server) fail("There is no compositor at $WAYLAND_DISPLAY.");
    struct wl_registry *registry = wl_display_get_registry(server);
    wl_registry_add_listener(registry, &registry_listener, NULL);
    wl_display_roundtrip(server);
    if (!compositor || !memory || !base) fail("The compositor lacks wl_compositor, wl_shm or xdg_wm_base.");
    xdg_wm_base_add_listener(base, &base_listener, NULL);
    surface = wl_compositor_create_surface(compositor);
    struct xdg_surface *role = xdg_wm_base_get_xdg_surface(base, surface);
    xdg_surface_add_listener(role, &role_listener, NULL);
    struct xdg_toplevel *toplevel = xdg_surface_get_toplevel(role);
    xdg_toplevel_add_listener(toplevel, &toplevel_listener, NULL);
    xdg_toplevel_set_title(toplevel, arguments[1]);
    wl_surface_commit(surface);
    while (!is_configured)
        if (wl_display_dispatch(server) < 0) fail("The compositor went away.");
    /* When this is answered, the window is on the screen. */
    wl_display_roundtrip(server);
    say("window");

    struct pollfd sources[] = {{wl_display_get_fd(server), POLLIN, 0}, {observer_start(arguments + 2), POLLIN, 0}};
    while (1) {
        if (wl_display_flush(server) < 0 && errno != EAGAIN) return 0;
        if (poll(sources, 2, -1) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
        if (sources[0].revents && wl_display_dispatch(server) < 0) return 0;
        if (sources[1].revents & POLLIN) observer_hear();
    }
}
