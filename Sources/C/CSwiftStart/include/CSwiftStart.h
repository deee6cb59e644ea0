/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOTIFYBUS_CSWIFTSTART_H
#define NOTIFYBUS_CSWIFTSTART_H

/* __wrap_swift_copyAuxiliaryExecutablePath() - what our own products have in place of a function of the Swift library
 *
 * At each start it looks for the program that prints backtraces, which is installed with the toolchain only, and it aborts
 * a program that finds no /proc. See --wrap in ld(1). */
char *__wrap_swift_copyAuxiliaryExecutablePath(const char *name);

#endif
