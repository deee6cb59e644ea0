/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks on dispatch queues: on a serial one, in order; on the main one, where the second notification is the last. */
#include <notify.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    __block int count = 0;
    __block int heard = 0;
    __block int ui = NOTIFY_TOKEN_INVALID;
    int background = NOTIFY_TOKEN_INVALID;
    dispatch_queue_t queue = dispatch_queue_create("com.example.queue", NULL);
    const char *greeting = "hello from the block";

    uint32_t status = notify_register_dispatch("com.example.work", &background, queue, ^(int token) {
        count += 1;
        if (count == 3) {
            printf("%s, %d times\n", greeting, count);
            notify_cancel(token);
            notify_post("com.example.done");
        }
    });
    if (status != NOTIFY_STATUS_OK) return 1;
    dispatch_release(queue);

    status = notify_register_dispatch("com.example.done", &ui, dispatch_get_main_queue(), ^(int token) {
        heard += 1;
        printf("done %d, %s\n", heard, token == ui ? "same token" : "?");
        if (heard == 2) {
            notify_cancel(token);
            exit(notify_is_valid_token(token) ? 1 : 0);
        }
        notify_post("com.example.done");
    });
    if (status != NOTIFY_STATUS_OK) return 1;
    for (int i = 0; i < 3; i++) notify_post("com.example.work");
    dispatch_main();
}
