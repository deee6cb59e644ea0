/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's libdispatch and Blocks runtime, found at run time: the C library includes neither, so a queue never
 * meets a second copy of libdispatch.
 */
#ifndef NOTIFYBUS_CNOTIFYDISPATCH_H
#define NOTIFYBUS_CNOTIFYDISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/* nd_is_available() - whether the program has loaded both; searches again until they are found */
bool nd_is_available(void);

/*
 * Call the rest only after nd_is_available() has returned true.
 *
 * nd_retain_queue(), nd_release_queue() - dispatch_retain(3), dispatch_release(3)
 * nd_is_block() - whether it is a block: a Swift closure or a function that is passed instead is not, and copying it would
 *                 crash
 * nd_copy_block(), nd_release_block() - _Block_copy(), _Block_release(); NULL if out of memory
 * nd_async() - dispatch_async_f(3)
 */
void nd_retain_queue(void *queue);
void nd_release_queue(void *queue);
bool nd_is_block(const void *block);
void *_Nullable nd_copy_block(void *block);
void nd_release_block(void *block);
void nd_async(void *queue, void *context, void (*work)(void *_Nullable context));

/* nd_call_block() - call a block that takes a token */
void nd_call_block(void *block, int token);

/*
 * notifybus_register_dispatch() - implements notify_register_dispatch(); in Swift, but without a block type, which
 * would need the Blocks runtime as soon as the library is loaded
 */
uint32_t notifybus_register_dispatch(const char *_Nullable name, int *_Nullable out_token, void *_Nullable queue,
                                     void *_Nullable block);

#pragma clang assume_nonnull end

#endif
