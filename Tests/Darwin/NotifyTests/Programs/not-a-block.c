/* SPDX-License-Identifier: Apache-2.0 */
/* A function where a block belongs, as a Swift closure would be in a declaration by hand; and a block, all the same. */
#include <notify.h>
#include <stdint.h>
#include <stdio.h>

static void function(int token) { (void)token; }

int main(void) {
    int token = 7, other = 7;
    dispatch_queue_t queue = dispatch_get_global_queue(0, 0);
    uint32_t status = notify_register_dispatch("com.example.a", &token, queue, (notify_handler_t)(uintptr_t)function);
    printf("%u %d\n", status, token);
    printf("%u\n", notify_register_dispatch("com.example.a", &other, queue, ^(int t) { (void)t; }));
    return 0;
}
