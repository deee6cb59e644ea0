/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a connection to a bus, and of other descriptors, in the child of fork(2). */
#ifndef NOTIFYBUS_CFORKGUARD_H
#define NOTIFYBUS_CFORKGUARD_H

#include <stdbool.h>

#pragma clang assume_nonnull begin

typedef struct fork_mark fork_mark;

/*
 * fork_close_in_child(), fork_keep_in_child() - start or stop closing a descriptor in the child of fork(2)
 * @is_bus: whether it is the socket of a bus
 *
 * For what parent and child cannot share, because each would read and write the other's data. A number that belongs to
 * another file by then is left alone. Call the second before closing the descriptor, with what the first has returned:
 * NULL if out of memory.
 */
fork_mark *_Nullable fork_close_in_child(int descriptor, bool is_bus);
void fork_keep_in_child(fork_mark *_Nullable mark);

/*
 * fork_delay(), fork_allow() - have forks of other threads wait, for a second at most
 *
 * Between the two a thread does what a child must not find half done. They nest, and many threads may do so at once.
 */
void fork_delay(void);
void fork_allow(void);

/*
 * fork_hooks() - pthread_atfork(3), once; the forks that wait are already affected
 *
 * From now on children are cut off from the bus: what is created when a process first uses one has locks that no fork
 * waits for.
 */
void fork_hooks(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/*
 * fork_object(), fork_set_object() - the object that a child takes over from its parent
 *
 * Here, because the first use of a variable of Swift's may create it, under a lock of Swift's runtime: a child that is
 * forked meanwhile would wait forever. It is set once; the second function returns whether this call did it.
 */
extern void *_Nullable fork_object_place;
static inline void *_Nullable fork_object(void) { return __atomic_load_n(&fork_object_place, __ATOMIC_ACQUIRE); }
bool fork_set_object(void *object);

/* fork_is_cut_off() - whether this process is a fork, without exec, of one that has used a bus or called fork_hooks() */
bool fork_is_cut_off(void);

#pragma clang assume_nonnull end

#endif
