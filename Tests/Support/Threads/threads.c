// SPDX-License-Identifier: Apache-2.0
//
// Threads for Swift's tasks in the program of tests, instead of one for each processor.
//
// A test is a task that blocks its thread while it waits for a bus or a process, which is what most tests do most of the
// time. With two processors two tests would run at once, and the processors would idle half of the time.
//
// Nothing public does this for a whole program of tests. `--experimental-maximum-parallelization-width` and
// $SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH only limit how many tests begin: with 8 and without this, 38 tests that
// mostly wait take 54 s on two processors instead of 17 s (Swift 6.3.1). A trait can give its tests an executor of their
// own (withTaskExecutorPreference), but each suite would have to name it, and one that doesn't would block the others.

#include "test-threads.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* How many tests run at once, unless there are more processors; $NOTIFYBUS_TESTS_AT_ONCE is another number. */
enum { AT_ONCE = 12 };

/* Of Swift's concurrency library, which asks its hook where a job runs that has no executor of its own. */
struct job;
#define SWIFT __attribute__((swiftcall))
typedef SWIFT void enqueue_function(struct job *);
extern SWIFT void (*swift_task_enqueueGlobal_hook)(struct job *, enqueue_function *original);
extern SWIFT void swift_job_run(struct job *, void *executor, uintptr_t implementation);

struct entry {
    struct entry *next;
    struct job *job;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
/* The newest job comes first: a test that has begun ends before others begin, and a suite whose tests run one after the
 * other does not wait for all others before each of them. */
static struct entry *newest;
static long limit, waiting, threads, idle;

static void *work(void *nothing) {
    pthread_mutex_lock(&lock);
    for (;;) {
        idle++;
        while (!newest) pthread_cond_wait(&more, &lock);
        idle--;
        struct entry *entry = newest;
        newest = entry->next;
        waiting--;
        pthread_mutex_unlock(&lock);
        struct job *job = entry->job;
        free(entry);
        swift_job_run(job, NULL, 0);
        pthread_mutex_lock(&lock);
    }
    return nothing;
}

static SWIFT void enqueue(struct job *job, enqueue_function *original) {
    (void)original;
    struct entry *entry = malloc(sizeof *entry);
    if (!entry) abort();
    pthread_mutex_lock(&lock);
    *entry = (struct entry){newest, job};
    newest = entry;
    waiting++;
    pthread_t thread;
    if (waiting > idle && threads < limit && pthread_create(&thread, NULL, work, NULL) == 0) {
        pthread_detach(thread);
        threads++;
    }
    if (threads == 0) abort();
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void take_over(void) {
    const char *number = getenv("NOTIFYBUS_TESTS_AT_ONCE");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    limit = number ? atol(number) : processors > AT_ONCE ? processors : AT_ONCE;
    if (limit > 0) swift_task_enqueueGlobal_hook = enqueue;
    /* Then most tests keep the processors busy, while others have a few seconds for a step. Fewer threads would not do: a task
     * that waits for one is late. */
    if (getenv("NOTIFYBUS_LONG")) setenv("SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH", "6", 0);
}
