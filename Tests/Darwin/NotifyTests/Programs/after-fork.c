/* SPDX-License-Identifier: Apache-2.0 */
/* What a child of fork(2) may do, and that it takes nothing from its parent. */
#define NOTIFYBUS_EXTENSIONS
#include <arpa/inet.h>
#include <notify.h>
#include <notify_private.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

/* Keeps the library's locks busy, so that some fork finds them held. */
static void *busy(void *name) {
    int token;
    while (!stop) {
        if (notify_register_check(name, &token) != NOTIFY_STATUS_OK) exit(3);
        notify_post("self.busy");
        notify_cancel(token);
    }
    return NULL;
}

/* There is no thread for it in a child. */
static void called(int token, void *context) {
    (void)token, (void)context;
    _exit(30);
}

static int child(int parents, int fd) {
    int token = 0, check = 0;
    char byte;
    alarm(120);
    if (notify_is_valid_token(parents)) return 10;
    if (notify_check(parents, &check) != NOTIFY_STATUS_INVALID_TOKEN) return 11;
    if (notify_post("com.example.a") != NOTIFY_STATUS_OPT_DISABLE) return 12;
    if (notify_register_check("com.example.a", &token) != NOTIFY_STATUS_OPT_DISABLE || token != -1) return 13;
    if (notify_cancel(parents) != NOTIFY_STATUS_INVALID_TOKEN) return 14;
    if (notify_suspend_pid(getppid()) != NOTIFY_STATUS_OPT_DISABLE) return 15;
    notify_set_options(NOTIFY_OPT_ENABLE);
    if (notify_post("com.example.a") != NOTIFY_STATUS_OPT_DISABLE) return 16;
    if (read(fd, &byte, 1) != -1) return 17;
    if (notify_register_check("self.child", &token) != NOTIFY_STATUS_OK) return 18;
    if (notify_check(token, &check) != NOTIFY_STATUS_OK || !check) return 19;
    if (notify_check(token, &check) != NOTIFY_STATUS_OK || check) return 20;
    if (notify_post("self.child") != NOTIFY_STATUS_OK) return 21;
    if (notify_check(token, &check) != NOTIFY_STATUS_OK || !check) return 22;
    int own;
    int number;
    if (notify_register_file_descriptor("self.child", &own, 0, &token) != NOTIFY_STATUS_OK) return 23;
    notify_post("self.child");
    if (read(own, &number, 4) != 4 || (int)ntohl((uint32_t)number) != token) return 24;
    uint64_t state = 0;
    if (notify_set_state(token, 42) != NOTIFY_STATUS_OK || notify_get_state(token, &state) || state != 42) return 25;
    if (notify_register_callback("self.child", &own, called, NULL) != NOTIFY_STATUS_OPT_DISABLE || own != -1) return 26;
    return notify_cancel(token) == NOTIFY_STATUS_OK ? 0 : 27;
}

int main(int argc, char **argv) {
    int fd, token, number;
    pthread_t threads[2];
    int forks = argc > 1 ? atoi(argv[1]) : 1;
    if (argc > 2) {
        /* Executed by a child: everything works again. */
        printf("post after exec %u\n", notify_post("com.example.a"));
        return 0;
    }
    if (notify_register_file_descriptor("com.example.a", &fd, 0, &token) != NOTIFY_STATUS_OK) return 1;
    pthread_create(&threads[0], NULL, busy, "com.example.busy");
    pthread_create(&threads[1], NULL, busy, "self.busy");
    for (int i = 0; i < forks; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(child(token, fd));
        int status;
        waitpid(pid, &status, 0);
        if (status != 0) {
            printf("child %d: status %d\n", i, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
            return 1;
        }
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("children done");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl(argv[0], argv[0], "0", "exec", (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
    /* What the executed child has posted, once; nothing of the others. */
    if (read(fd, &number, 4) != 4 || (int)ntohl((uint32_t)number) != token) return 1;
    puts("parent heard it");
    notify_cancel(token);
    return 0;
}
