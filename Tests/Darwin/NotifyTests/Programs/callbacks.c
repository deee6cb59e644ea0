/* SPDX-License-Identifier: Apache-2.0 */
/* notify_register_callback(): its statuses, what a callback may do, and that notify_cancel() waits for one. */
#define NOTIFYBUS_EXTENSIONS
#include <notify.h>
#include <notify_private.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "com.example.callback"
#define OTHER "com.example.other"

static int failures;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("line %d: %s\n", __LINE__, #condition);                                                             \
            failures += 1;                                                                                             \
        }                                                                                                              \
    } while (0)

static pthread_t main_thread;
static sem_t called;

static void count(int token, void *context) {
    (void)token;
    *(int *)context += 1;
    sem_post(&called);
}

static void check_statuses(void) {
    char name[513];
    int token = 0;
    memset(name, 'x', 512);
    name[512] = 0;
    EXPECT(notify_register_callback(NAME, &token, NULL, NULL) == NOTIFY_STATUS_NULL_INPUT && token == -1);
    EXPECT(notify_register_callback(NAME, NULL, count, NULL) == NOTIFY_STATUS_NULL_INPUT);
    token = 0;
    EXPECT(notify_register_callback(NULL, &token, count, NULL) == NOTIFY_STATUS_INVALID_NAME && token == -1);
    EXPECT(notify_register_callback("", &token, count, NULL) == NOTIFY_STATUS_INVALID_NAME);
    EXPECT(notify_register_callback(name, &token, count, NULL) == NOTIFY_STATUS_INVALID_NAME);
    notify_set_options(NOTIFY_OPT_DISABLE);
    EXPECT(notify_register_callback(NAME, &token, count, NULL) == NOTIFY_STATUS_OPT_DISABLE && token == -1);
    notify_set_options(NOTIFY_OPT_ENABLE);
}

/* Does everything that a program may do, and ends its own registration. */
static void do_everything(int token, void *context) {
    int check, other, own, others = 0, status;
    uint32_t peek;
    uint64_t state = 0;
    sigset_t blocked;
    pid_t pid;
    EXPECT(!pthread_equal(pthread_self(), main_thread));
    EXPECT(token == *(int *)context);
    EXPECT(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGUSR1));
    EXPECT(notify_check(token, &check) == NOTIFY_STATUS_OK && check == 1);
    EXPECT(notify_peek(token, &peek) == NOTIFY_STATUS_INVALID_REQUEST);
    EXPECT(notify_register_callback(OTHER, &other, count, &others) == NOTIFY_STATUS_OK);
    EXPECT(notify_suspend(other) == NOTIFY_STATUS_OK && notify_resume(other) == NOTIFY_STATUS_OK);
    EXPECT(notify_post(OTHER) == NOTIFY_STATUS_OK);
    EXPECT(notify_check(other, &check) == NOTIFY_STATUS_OK && check == 1);
    /* It waits for no callback: this is the only one that is running. The other one had yet to begin. */
    EXPECT(notify_cancel(other) == NOTIFY_STATUS_OK && others == 0);
    EXPECT(notify_register_check("self.every", &own) == NOTIFY_STATUS_OK);
    EXPECT(notify_set_state(own, 42) == NOTIFY_STATUS_OK && notify_get_state(own, &state) == NOTIFY_STATUS_OK);
    EXPECT(state == 42 && notify_cancel(own) == NOTIFY_STATUS_OK);
    pid = fork();
    if (pid == 0) _exit(notify_post(NAME) == NOTIFY_STATUS_OPT_DISABLE ? 0 : 1);
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    EXPECT(notify_cancel(token) == NOTIFY_STATUS_OK && !notify_is_valid_token(token));
    sem_post(&called);
}

static sem_t begun;
static volatile int has_ended;

static void take_long(int token, void *context) {
    (void)token;
    sem_post(&begun);
    usleep(20000);
    /* Freed, if notify_cancel() did not wait. */
    has_ended = *(int *)context;
}

int main(void) {
    int token, calls = 0, one = 1;
    main_thread = pthread_self();
    sem_init(&called, 0, 0);
    sem_init(&begun, 0, 0);
    check_statuses();

    EXPECT(notify_register_callback(NAME, &token, do_everything, &token) == NOTIFY_STATUS_OK);
    EXPECT(notify_post(NAME) == NOTIFY_STATUS_OK);
    sem_wait(&called);
    EXPECT(notify_cancel(token) == NOTIFY_STATUS_INVALID_TOKEN);

    /* Without a bus's help, and not on the posting thread. */
    EXPECT(notify_register_callback("self.callback", &token, count, &calls) == NOTIFY_STATUS_OK);
    EXPECT(notify_post("self.callback") == NOTIFY_STATUS_OK);
    sem_wait(&called);
    EXPECT(notify_cancel(token) == NOTIFY_STATUS_OK && calls == 1);

    EXPECT(notify_register_callback(NAME, &token, take_long, &one) == NOTIFY_STATUS_OK);
    EXPECT(notify_post(NAME) == NOTIFY_STATUS_OK);
    sem_wait(&begun);
    EXPECT(notify_cancel(token) == NOTIFY_STATUS_OK && has_ended);
    printf("failures %d\n", failures);
    return failures != 0;
}
