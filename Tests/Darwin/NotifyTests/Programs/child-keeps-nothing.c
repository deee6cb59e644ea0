/* SPDX-License-Identifier: Apache-2.0 */
/* A parent that ends while its child goes on: the bus must see its connections end. */
#include <notify.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    int token;
    char line[16];
    if (notify_register_check("com.example.a", &token) != NOTIFY_STATUS_OK) return 1;
    notify_post("com.example.a");
    puts("registered");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
    if (fork() == 0) {
        /* Until the test closes the standard input. */
        while (fgets(line, sizeof line, stdin)) {}
        _exit(0);
    }
    return 0;
}
