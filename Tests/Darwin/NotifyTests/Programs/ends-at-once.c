/* SPDX-License-Identifier: Apache-2.0 */
/* Posts 1,000 names and ends, as its argument says: by its return from main, inside a callback, beside a child. */
#include <notify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POSTS = 1000 };

static int post_all(void) {
    char name[64];
    for (int i = 0; i < POSTS; i++) {
        snprintf(name, sizeof name, "com.example.end.%d", i);
        if (notify_post(name) != NOTIFY_STATUS_OK) return 1;
    }
    return 0;
}

static void say_goodbye(void) { post_all(); }

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "return";
    if (strcmp(way, "handler") == 0) {
        /* Installed before the library has installed anything, so it runs after all that the library installs. */
        atexit(say_goodbye);
        return notify_post("com.example.first") != NOTIFY_STATUS_OK;
    }
    if (notify_post("com.example.first") != NOTIFY_STATUS_OK) return 1;
    puts("posted the first");
    fflush(stdout);
    if (strcmp(way, "wait") == 0) getchar();
    int status = post_all();
    if (strcmp(way, "fork") == 0) {
        /* The child ends in the same way, and leaves to its parent what waits there. */
        pid_t child = fork();
        if (child != 0) {
            waitpid(child, &status, 0);
            printf("child %d\n", status);
        }
    }
    return status;
}
