/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks while another thread makes the first call, at a moment that the argument names: inside one of the functions
 * below, which replace libc's for the library. Prints how many sockets the child has inherited, what it may do on the
 * bus, and within itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <notify.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *moment;
static sem_t is_reached, is_over;

/* Has the main thread fork. A fork may rightly wait until this returns. */
static void reach(const char *what) {
    struct timespec limit;
    if (!moment || strcmp(what, moment) != 0) return;
    moment = NULL;
    sem_post(&is_reached);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 200000000;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    while (sem_timedwait(&is_over, &limit) != 0 && errno == EINTR) continue;
}

int pipe2(int ends[2], int flags) {
    int result = (int)syscall(SYS_pipe2, ends, flags);
    reach("pipe2");
    return result;
}

int eventfd(unsigned int value, int flags) {
    int result = (int)syscall(SYS_eventfd2, value, flags);
    reach("eventfd");
    return result;
}

int connect(int descriptor, const struct sockaddr *address, socklen_t size) {
    int result = (int)syscall(SYS_connect, descriptor, address, size);
    int error = errno;
    reach("connect");
    errno = error;
    return result;
}

static void *first_call(void *result) {
    int token;
    *(unsigned int *)result = notify_register_check("com.example.first", &token);
    return NULL;
}

static int sockets(void) {
    struct stat facts;
    int count = 0;
    for (int i = 3; i < 64; i++) count += fstat(i, &facts) == 0 && S_ISSOCK(facts.st_mode);
    return count;
}

int main(int argc, char **argv) {
    int own;
    unsigned int registered = 0;
    pthread_t thread;
    sem_init(&is_reached, 0, 0);
    sem_init(&is_over, 0, 0);
    if (argc != 2) return 1;
    /* Creates the engine. */
    if (strcmp(argv[1], "pipe2") != 0) notify_cancel(0);
    moment = argv[1];
    pthread_create(&thread, NULL, first_call, &registered);
    while (sem_wait(&is_reached) != 0) continue;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        printf("%d sockets, ", sockets());
        unsigned int posted = notify_post("com.example.second");
        printf("%u, %u\n", posted, notify_register_check("self.second", &own));
        fflush(stdout);
        _exit(0);
    }
    sem_post(&is_over);
    int status;
    waitpid(pid, &status, 0);
    pthread_join(thread, NULL);
    printf("child ended with %d, parent has %u\n", status, registered);
    return 0;
}
