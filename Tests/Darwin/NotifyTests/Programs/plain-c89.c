/* SPDX-License-Identifier: Apache-2.0 */
/* The headers in the oldest C, and in C++. */
#include <notify.h>
#include <notify_keys.h>
#include <notify_private.h>

#ifndef NOTIFYBUS_EXTENSIONS
/* What Darwin does not have is declared only if asked for, so a program may use the name. */
static int notify_register_callback = 0;
#define CALLBACK notify_register_callback
#else
#define CALLBACK (notify_register_callback == 0)
#endif

int main(void) {
    int token = NOTIFY_TOKEN_INVALID;
    const char *name = kNotifyTimeZoneChange;
    return name[0] != 'c' || NOTIFY_IS_VALID_TOKEN(token) || notify_is_valid_token(token) || CALLBACK ? 1 : 0;
}
