/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "CLinux.h"

enum { CHUNK = 256, BUS = 1 << 30 };

/* Descriptor plus one, with BUS set for bus sockets; 0 marks a free slot. Chunks are never freed. */
struct chunk {
    _Atomic int places[CHUNK];
    struct chunk *_Atomic next;
};

static struct chunk first;
static _Atomic bool cut_off;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Calls only what signal-safety(7) allows: other threads may have held any lock at the fork. */
static void in_child(void) {
    for (struct chunk *chunk = &first; chunk; chunk = atomic_load(&chunk->next)) {
        for (int i = 0; i < CHUNK; i++) {
            int value = atomic_exchange(&chunk->places[i], 0);
            if (value & BUS) atomic_store(&cut_off, true);
            if (value) close((value & ~BUS) - 1);
        }
    }
}

static void install(void) { pthread_atfork(NULL, NULL, in_child); }

bool linux_close_in_child(int descriptor, bool is_bus) {
    pthread_once(&once, install);
    int wanted = (descriptor + 1) | (is_bus ? BUS : 0);
    for (struct chunk *chunk = &first;;) {
        for (int i = 0; i < CHUNK; i++) {
            int expected = 0;
            if (atomic_load_explicit(&chunk->places[i], memory_order_relaxed) == 0 &&
                atomic_compare_exchange_strong(&chunk->places[i], &expected, wanted))
                return true;
        }
        struct chunk *next = atomic_load(&chunk->next);
        if (!next) {
            struct chunk *fresh = calloc(1, sizeof *fresh);
            if (!fresh) return false;
            if (atomic_compare_exchange_strong(&chunk->next, &next, fresh))
                next = fresh;
            else
                free(fresh);
        }
        chunk = next;
    }
}

void linux_keep_in_child(int descriptor) {
    for (struct chunk *chunk = &first; chunk; chunk = atomic_load(&chunk->next)) {
        for (int i = 0; i < CHUNK; i++) {
            int value = atomic_load_explicit(&chunk->places[i], memory_order_relaxed);
            if ((value & ~BUS) == descriptor + 1) {
                atomic_store(&chunk->places[i], 0);
                return;
            }
        }
    }
}

bool linux_is_cut_off(void) { return atomic_load_explicit(&cut_off, memory_order_relaxed); }
