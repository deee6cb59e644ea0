/* SPDX-License-Identifier: Apache-2.0 */
/* What notify_register_dispatch() says in a program without libdispatch; compiled without blocks. */
#include <notify.h>
#include <stdio.h>

uint32_t notify_register_dispatch(const char *name, int *out_token, void *queue, void *handler);

int main(void) {
    int token = 7, other = 7;
    uint32_t status = notify_register_dispatch("com.example.a", &token, &status, &status);
    printf("%u %d\n", status, token);
    printf("%u\n", notify_register_dispatch("com.example.a", &token, NULL, &status));
    printf("%u\n", notify_register_check("com.example.a", &other));
    return 0;
}
