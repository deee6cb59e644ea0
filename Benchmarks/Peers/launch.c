// SPDX-License-Identifier: Apache-2.0
//
// Runs a command from start to end and says what it took:
//
//     launch COUNT COMMAND [ARG…]            COUNT times, until it ends
//     launch --first COUNT COMMAND [ARG…]    COUNT times, until the first byte on its standard output or its descriptor
//                                            3; then it is ended
//
// For each run one line: nanoseconds, peak resident memory in kB, exit status. A small program of its own, because a
// child's peak memory is never less than what its parent had when it forked.

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_FD = 3 };

extern char **environ;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static int run(char **command, int until_first) {
    int output[2] = {-1, -1};
    if (until_first && pipe2(output, O_CLOEXEC) < 0) return 1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (until_first) {
        posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, output[1], READY_FD);
    } else {
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }

    pid_t child;
    long began = now();
    if (posix_spawnp(&child, command[0], &actions, NULL, command, environ) != 0) {
        fprintf(stderr, "%s cannot be run\n", command[0]);
        return 1;
    }
    posix_spawn_file_actions_destroy(&actions);
    char byte;
    long ended = 0;
    int seen = 1;
    if (until_first) {
        close(output[1]);
        seen = read(output[0], &byte, 1) == 1;
        ended = now();
        kill(child, SIGTERM);
        close(output[0]);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) return 1;
    if (!until_first) ended = now();
    int code = until_first ? !seen : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    printf("%ld %ld %d\n", ended - began, usage.ru_maxrss, code);
    return 0;
}

int main(int count, char **arguments) {
    int until_first = count > 1 && strcmp(arguments[1], "--first") == 0;
    char **rest = arguments + 1 + until_first;
    if (count < 3 + until_first) {
        fputs("usage: launch [--first] COUNT COMMAND [ARG...]\n", stderr);
        return 64;
    }
    for (int i = atoi(rest[0]); i > 0; i--)
        if (run(rest + 1, until_first) != 0) return 1;
    return 0;
}
