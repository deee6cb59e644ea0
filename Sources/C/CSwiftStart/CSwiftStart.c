/* SPDX-License-Identifier: Apache-2.0 */
#include "CSwiftStart.h"

#include <stddef.h>

char *__wrap_swift_copyAuxiliaryExecutablePath(const char *name) {
    (void)name;
    return NULL;
}
