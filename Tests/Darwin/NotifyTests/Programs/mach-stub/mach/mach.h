/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs for Darwin take of <mach/mach.h> and <mach/mach_time.h>, as far as Linux can have it: the clock, and
 * ports that are never there.
 */
#ifndef MACH_STUB_H
#define MACH_STUB_H

#include <stdint.h>
#include <time.h>

typedef unsigned int mach_port_t;
typedef struct {
    uint32_t numer, denom;
} mach_timebase_info_data_t;

#define MACH_PORT_NULL 0

static inline int mach_timebase_info(mach_timebase_info_data_t *info) {
    info->numer = info->denom = 1;
    return 0;
}

static inline uint64_t mach_absolute_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint32_t stub_register_mach_port(const char *name, mach_port_t *port, int flags, int *token) {
    (void)name, (void)flags;
    *port = MACH_PORT_NULL;
    *token = -1;
    return 3; /* NOTIFY_STATUS_INVALID_PORT */
}
/* <notify.h> leaves room for this, whichever is included first. */
#define notify_register_mach_port(name, port, flags, token) stub_register_mach_port(name, port, flags, token)

#endif
