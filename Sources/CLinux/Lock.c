/* SPDX-License-Identifier: Apache-2.0 */
/* The slow paths of the lock in CLinux.h, where a thread sleeps or wakes others. */

#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sleeps while the word has the value; returns false on timeout. FUTEX_WAIT_BITSET takes an absolute time. */
static bool sleep_while(uint32_t *word, uint32_t value, int64_t deadline) {
    int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
    struct timespec time = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    int before = errno;
    long result = syscall(SYS_futex, word, operation, value, deadline < 0 ? NULL : &time, NULL, FUTEX_BITSET_MATCH_ANY);
    bool is_late = result < 0 && errno == ETIMEDOUT;
    errno = before;
    return !is_late;
}

static void wake(uint32_t *word, int count) {
    int before = errno;
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
    errno = before;
}

static bool take_slowly(linux_lock *lock, int64_t deadline) {
    /* A thread that has slept must assume that others still sleep. */
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0) {
        if (!sleep_while(&lock->state, 2, deadline)) return false;
    }
    return true;
}

void linux_take_slowly(linux_lock *lock) {
    take_slowly(lock, -1);
}

void linux_give_slowly(linux_lock *lock) {
    wake(&lock->state, 1);
}

bool linux_take_until(linux_lock *lock, int64_t deadline) {
    uint32_t expected = 0;
    if (__atomic_compare_exchange_n(&lock->state, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
    return take_slowly(lock, deadline);
}

bool linux_wait(linux_lock *lock, int64_t deadline) {
    /* Read while holding the lock, so every later linux_wake_all() changes it after it was read. */
    uint32_t turn = __atomic_load_n(&lock->turn, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lock->waiting, 1, __ATOMIC_RELAXED);
    linux_give(lock);
    bool is_in_time = sleep_while(&lock->turn, turn, deadline);
    linux_take(lock);
    __atomic_fetch_sub(&lock->waiting, 1, __ATOMIC_RELAXED);
    return is_in_time;
}

void linux_wake_all(linux_lock *lock) {
    /* A waiter counted itself under the lock, before the change that wakes it was made under the lock. */
    if (__atomic_load_n(&lock->waiting, __ATOMIC_RELAXED) == 0) return;
    __atomic_fetch_add(&lock->turn, 1, __ATOMIC_RELEASE);
    wake(&lock->turn, INT_MAX);
}
