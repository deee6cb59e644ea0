/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a command, also in place of what the Swift library has behind CommandLine.
 *
 * That reads /proc/self/cmdline and /proc/self/maps, at each start of a program that does not use CommandLine either,
 * which was 6 % of the instructions of notify-post, and finds nothing where /proc is not mounted.
 */
#ifndef NOTIFYBUS_CARGUMENTS_H
#define NOTIFYBUS_CARGUMENTS_H

#pragma clang assume_nonnull begin

/* arguments_of_process() - the arguments as the kernel handed them over, ending with NULL */
char *_Nullable *_Nonnull arguments_of_process(void);

/* What the Swift library calls. A static program then has these instead of the library's own, and what they need. */
char *_Nullable *_Nonnull _swift_stdlib_getUnsafeArgvArgc(int *count);
void _swift_stdlib_overrideUnsafeArgvArgc(char *_Nullable *_Nonnull values, int count);

#pragma clang assume_nonnull end

#endif
