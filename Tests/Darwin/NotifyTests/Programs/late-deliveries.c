/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancels tokens while another thread posts their name. Prints how many signals and tokens came after notify_cancel()
 * had returned. The argument is how often it tries.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <notify.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NAME "com.example.late"

static atomic_int posts;
static atomic_bool ends;

static void *post(void *unused) {
    while (!ends) {
        notify_post(NAME);
        posts++;
    }
    return unused;
}

/* Returns once a post that had begun has been delivered. */
static void await_post(void) {
    for (int before = posts; posts - before < 2;) sched_yield();
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, fd, kept, signals = 0, tokens = 0;
    const struct timespec at_once = {0};
    sigset_t blocked;
    pthread_t poster;
    /* In all threads: what is sent stays pending. */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    if (notify_register_file_descriptor("com.example.other", &fd, 0, &kept) != NOTIFY_STATUS_OK) return 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    pthread_create(&poster, NULL, post, NULL);
    for (int i = 0; i < rounds; i++) {
        int signalled, written, number;
        if (notify_register_signal(NAME, SIGUSR1, &signalled) != NOTIFY_STATUS_OK) return 1;
        if (notify_register_file_descriptor(NAME, &fd, NOTIFY_REUSE, &written) != NOTIFY_STATUS_OK) return 1;
        await_post();
        for (int spins = rand() % 4096; spins > 0; spins--) atomic_thread_fence(memory_order_seq_cst);
        notify_cancel(signalled);
        while (sigtimedwait(&blocked, NULL, &at_once) > 0) continue;
        notify_cancel(written);
        while (read(fd, &number, sizeof number) == (ssize_t)sizeof number) continue;
        await_post();
        signals += sigtimedwait(&blocked, NULL, &at_once) > 0;
        while (read(fd, &number, sizeof number) == (ssize_t)sizeof number)
            tokens += (int)ntohl((uint32_t)number) == written;
    }
    ends = 1;
    pthread_join(poster, NULL);
    printf("%d late signals, %d late tokens\n", signals, tokens);
    return 0;
}
