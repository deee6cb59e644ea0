/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOTIFYBUS_CRUNLOOP_H
#define NOTIFYBUS_CRUNLOOP_H

#include <stdbool.h>

/*
 * notifybus_run_loop() - run Foundation's run loop of this thread, if the program is linked with Foundation
 *
 * Return: false if the program has no run loops and this is the main thread, which must serve the main queue
 */
bool notifybus_run_loop(void);

#endif
