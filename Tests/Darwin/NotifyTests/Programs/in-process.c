/* SPDX-License-Identifier: Apache-2.0 */
/* With NOTIFYBUS_ADDRESS=process: names stay in the process, and nothing is opened. */
#include <notify.h>
#include <stdio.h>

int main(void) {
    int token, check = 0;
    printf("%u\n", notify_register_check("com.example.a", &token));
    notify_check(token, &check);
    printf("%u\n", notify_post("com.example.a"));
    notify_check(token, &check);
    printf("%d\n", check);
    notify_check(token, &check);
    printf("%d\n", check);
    return 0;
}
