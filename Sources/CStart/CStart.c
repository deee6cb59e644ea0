/* SPDX-License-Identifier: Apache-2.0 */
#include "CStart.h"

#include <stddef.h>

static char *no_arguments[] = {NULL};
static char **arguments = no_arguments;

/* glibc calls constructors with the arguments of main(). */
__attribute__((constructor)) static void keep(int count, char **values) {
    if (count > 0 && values) arguments = values;
}

char **arguments_of_process(void) {
    return arguments;
}

char **_swift_stdlib_getUnsafeArgvArgc(int *count) {
    *count = 0;
    while (arguments[*count] != NULL) ++*count;
    return arguments;
}

void _swift_stdlib_overrideUnsafeArgvArgc(char **values, int count) {
    (void)count;
    arguments = values;
}

#if defined(NOTIFYBUS_IS_STATIC)
const char *_dl_get_origin(void) {
    return (const char *)-1;
}
#endif
