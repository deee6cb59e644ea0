/* SPDX-License-Identifier: Apache-2.0 */
/* Many registrations: duplicates of one name, and pairs of register and cancel from several threads. */
#include <notify.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 25000 };
static atomic_int failures;

static void *pairs(void *argument) {
    char name[64];
    int last = 0;
    for (int i = 0; i < PAIRS; i++) {
        int token, check;
        /* A name of the thread's own, and one that all share. */
        snprintf(name, sizeof name, "com.example.pair.%d", i % 2 ? (int)(long)argument : 99);
        if (notify_register_check(name, &token) != NOTIFY_STATUS_OK || token <= last) failures++;
        if (notify_check(token, &check) != NOTIFY_STATUS_OK || !check) failures++;
        last = token;
        if (notify_cancel(token) != NOTIFY_STATUS_OK) failures++;
        if (notify_check(token, &check) != NOTIFY_STATUS_INVALID_TOKEN) failures++;
        if (notify_cancel(token) != NOTIFY_STATUS_INVALID_TOKEN) failures++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "pairs") == 0) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, pairs, (void *)i);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        printf("failures %d\n", failures);
        return 0;
    }
    int count = argc == 2 ? atoi(argv[1]) : 0;
    int *tokens = malloc(sizeof *tokens * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        int check;
        if (notify_register_check("com.example.many", &tokens[i]) != NOTIFY_STATUS_OK) return 1;
        if (notify_check(tokens[i], &check) != NOTIFY_STATUS_OK || !check) return 1;
    }
    puts("registered");
    fflush(stdout);
    if (notify_post("com.example.many") != NOTIFY_STATUS_OK) return 1;
    for (int i = count - 1; i >= 0; i--) {
        int check = 0;
        while (!check) {
            if (notify_check(tokens[i], &check) != NOTIFY_STATUS_OK) return 1;
        }
        if (notify_check(tokens[i], &check) != NOTIFY_STATUS_OK || check) return 1;
    }
    for (int i = 0; i < count; i++)
        if (notify_cancel(tokens[i]) != NOTIFY_STATUS_OK) return 1;
    puts("all were told once");
    free(tokens);
    return 0;
}
