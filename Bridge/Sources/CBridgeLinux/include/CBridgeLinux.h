/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux calls that Swift's Glibc module does not declare. Each does what the manual page of the call it is named after
 * says.
 */
#ifndef NOTIFYBRIDGE_CBRIDGELINUX_H
#define NOTIFYBRIDGE_CBRIDGELINUX_H

#include <signal.h>

#pragma clang assume_nonnull begin

/* bridge_eventfd() - eventfd(2): a new one at zero, closed on exec, that does not block */
int bridge_eventfd(void);

/* bridge_signalfd() - signalfd(2): a new one, closed on exec, that does not block */
int bridge_signalfd(const sigset_t *signals);

/* bridge_signal() - the number of the next signal that a signalfd has; 0 if there is none */
int bridge_signal(int descriptor);

/* bridge_name_thread() - pthread_setname_np(3) for the calling thread; at most 15 bytes */
void bridge_name_thread(const char *name);

#pragma clang assume_nonnull end

#endif
