/* SPDX-License-Identifier: Apache-2.0 */
/* A value that is read from its file again only when a post has said that it changed. */
#include <notify.h>
#include <stdio.h>
#include <stdlib.h>

static const char *path;
static int token = NOTIFY_TOKEN_INVALID;
static char value[128];

static const char *current_value(void) {
    int changed = 1;
    if (token == NOTIFY_TOKEN_INVALID) {
        uint32_t status = notify_register_check("com.example.settings.changed", &token);
        if (status != NOTIFY_STATUS_OK) token = NOTIFY_TOKEN_INVALID;
    }
    if (token != NOTIFY_TOKEN_INVALID && notify_check(token, &changed) == NOTIFY_STATUS_OK && !changed) {
        printf("cached ");
        return value;
    }
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%127s", value) != 1) exit(1);
    fclose(file);
    printf("read ");
    return value;
}

int main(int argc, char **argv) {
    char line[16];
    if (argc != 2) return 64;
    path = argv[1];
    while (fgets(line, sizeof line, stdin)) {
        puts(current_value());
        fflush(stdout);
    }
    return notify_cancel(token) == NOTIFY_STATUS_OK ? 0 : 1;
}
