/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command does before main(), and what it leaves out. Start.S is the rest.
 *
 * Some functions here take the place of others in the Swift library and the C library: the linker takes from an archive
 * only what is still missing. If a library no longer has a function, the one here is never called.
 */
#ifndef NOTIFYBUS_CSTART_H
#define NOTIFYBUS_CSTART_H

#pragma clang assume_nonnull begin

/* arguments_of_process() - the arguments as the kernel handed them over, ending with NULL */
char *_Nullable *_Nonnull arguments_of_process(void);

/* What is behind Swift's CommandLine, which the commands do not use
 *
 * The Swift library reads /proc/self/maps for it at each start, 6 % of the instructions of notify-post, and finds nothing
 * where /proc is not mounted. */
char *_Nullable *_Nonnull _swift_stdlib_getUnsafeArgvArgc(int *count);
void _swift_stdlib_overrideUnsafeArgvArgc(char *_Nullable *_Nonnull values, int count);

#if defined(NOTIFYBUS_IS_STATIC)
/* What glibc replaces $ORIGIN by in LD_LIBRARY_PATH: here nothing, which it represents by -1
 *
 * A static program of glibc reads the link /proc/self/exe for it at each start, 3 % of the time that notify-post takes. */
const char *_Nonnull _dl_get_origin(void);
#endif

#pragma clang assume_nonnull end

#endif
