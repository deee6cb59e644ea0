/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CForkGuard.h"

enum { CHUNK = 256, BUS = 1 << 30, FILLING = -1 };

/*
 * Descriptor plus one, with BUS set for bus sockets; 0 marks a free place. Also which file it is: the program may have
 * closed the descriptor by itself, and the number may since belong to something else.
 */
struct fork_mark {
    _Atomic int value;
    dev_t device;
    ino_t inode;
};

/* Chunks are never freed. */
struct chunk {
    fork_mark places[CHUNK];
    struct chunk *_Atomic next;
};

static struct chunk first;
static _Atomic bool cut_off;

/* How long a fork waits for other threads, in milliseconds. */
enum { PATIENCE = 1000 };

/* Held for reading by threads that delay forks, and for writing by a fork. */
static pthread_rwlock_t forks = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local int delays;

struct hooks {
    void (*prepare)(void), (*parent)(void), (*child)(void);
};

static struct hooks given;
static struct hooks *_Atomic hooks;
/* Of the fork that this thread makes. */
static _Thread_local struct hooks *prepared;
static _Thread_local bool has_waited;

static bool wait_for_delays(void) {
    /* A library that connects may itself start a program. */
    if (delays > 0) return false;
    for (int i = 0; i < PATIENCE; i++) {
        if (pthread_rwlock_trywrlock(&forks) == 0) return true;
        usleep(1000);
    }
    return false;
}

static void prepare(void) {
    while (true) {
        prepared = atomic_load(&hooks);
        if (prepared) prepared->prepare();
        has_waited = wait_for_delays();
        if (prepared || !atomic_load(&hooks)) return;
        /* They have come meanwhile. */
        if (has_waited) pthread_rwlock_unlock(&forks);
    }
}

static void in_parent(void) {
    if (has_waited) pthread_rwlock_unlock(&forks);
    if (prepared) prepared->parent();
}

/* Calls only what signal-safety(7) allows: other threads may have held any lock at the fork. */
static void in_child(void) {
    forks = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    delays = 0;
    if (prepared || !has_waited) atomic_store(&cut_off, true);
    for (struct chunk *chunk = &first; chunk; chunk = atomic_load(&chunk->next)) {
        for (int i = 0; i < CHUNK; i++) {
            fork_mark *mark = &chunk->places[i];
            int value = atomic_exchange(&mark->value, 0);
            if (value <= 0) continue;
            if (value & BUS) atomic_store(&cut_off, true);
            struct stat facts;
            int descriptor = (value & ~BUS) - 1;
            if (fstat(descriptor, &facts) == 0 && facts.st_dev == mark->device && facts.st_ino == mark->inode)
                close(descriptor);
        }
    }
    if (prepared) prepared->child();
}

/* Before any thread can fork: later ones could begin between the handler's installation and what it is to guard. */
__attribute__((constructor)) static void install(void) { pthread_atfork(prepare, in_parent, in_child); }

void fork_hooks(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    given = (struct hooks){prepare, parent, child};
    atomic_store(&hooks, &given);
}

void fork_delay(void) {
    pthread_rwlock_rdlock(&forks);
    delays++;
}

void fork_allow(void) {
    if (delays == 0) return;
    delays--;
    pthread_rwlock_unlock(&forks);
}

fork_mark *fork_close_in_child(int descriptor, bool is_bus) {
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) return NULL;
    for (struct chunk *chunk = &first;;) {
        for (int i = 0; i < CHUNK; i++) {
            fork_mark *mark = &chunk->places[i];
            int expected = 0;
            if (atomic_load_explicit(&mark->value, memory_order_relaxed) == 0 &&
                atomic_compare_exchange_strong(&mark->value, &expected, FILLING)) {
                mark->device = facts.st_dev;
                mark->inode = facts.st_ino;
                atomic_store(&mark->value, (descriptor + 1) | (is_bus ? BUS : 0));
                return mark;
            }
        }
        struct chunk *next = atomic_load(&chunk->next);
        if (!next) {
            struct chunk *fresh = calloc(1, sizeof *fresh);
            if (!fresh) return NULL;
            if (atomic_compare_exchange_strong(&chunk->next, &next, fresh))
                next = fresh;
            else
                free(fresh);
        }
        chunk = next;
    }
}

void fork_keep_in_child(fork_mark *mark) {
    if (mark) atomic_store(&mark->value, 0);
}

bool fork_is_cut_off(void) { return atomic_load_explicit(&cut_off, memory_order_relaxed); }

void *fork_object_place;

bool fork_set_object(void *object) {
    void *expected = NULL;
    return __atomic_compare_exchange_n(&fork_object_place, &expected, object, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
