/* SPDX-License-Identifier: Apache-2.0 */
/* The headers in the oldest C, and in C++. */
#include <notify.h>
#include <notify_keys.h>
#include <notify_private.h>

int main(void) {
    int token = NOTIFY_TOKEN_INVALID;
    const char *name = kNotifyTimeZoneChange;
    return name[0] != 'c' || NOTIFY_IS_VALID_TOKEN(token) || notify_is_valid_token(token) ? 1 : 0;
}
