/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CRunLoop.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Weak, so that no program gets Foundation for it. Swift has no such declarations on Linux. */
extern void CFRunLoopRun(void) __attribute__((weak));

bool notifybus_run_loop(void) {
    if (!CFRunLoopRun) return syscall(SYS_gettid) != getpid();
    CFRunLoopRun();
    return true;
}
