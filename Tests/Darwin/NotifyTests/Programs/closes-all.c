/* Registers, closes all descriptors, as daemons do, and posts. */
#include <fcntl.h>
#include <notify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* argv[1]: what gets the numbers then: "nothing", "files" or "sockets"; argv[2]: a file */
int main(int count, char **argument) {
    int token, descriptor, found, ends[2], before[64];
    uint32_t status = notify_register_check("com.example.heard", &token);
    struct stat facts;
    struct rusage usage;
    if (count < 3 || status != NOTIFY_STATUS_OK) return 1;
    notify_register_file_descriptor("com.example.heard", &descriptor, 0, &token);
    notify_post("com.example.first");
    usleep(100000);
    int answers = dup(STDOUT_FILENO);
    for (int i = 0; i < 64; i++) {
        before[i] = i != answers && fstat(i, &facts) == 0;
        if (before[i] && i > 2) close(i);
    }
    for (int i = 3; i < 64; i++) {
        if (!before[i]) continue;
        if (strcmp(argument[1], "files") == 0) {
            int file = open(argument[2], O_RDWR | O_CREAT | O_APPEND, 0600);
            if (file != i) dup2(file, i);
            if (file != i) close(file);
        } else if (strcmp(argument[1], "sockets") == 0 && i + 1 < 64) {
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return 1;
            /* The other end is kept, above all that were there. */
            fcntl(ends[1], F_DUPFD, 100);
            close(ends[1]);
            if (ends[0] != i) {
                dup2(ends[0], i);
                close(ends[0]);
            }
        }
    }
    status = notify_post("com.example.second");
    dprintf(answers, "posted %u\n", status);
    /* It is heard again once the connection is back; a token of before may be lost with its pipe. */
    for (int i = 0; i < 600; i++) {
        int changed = 0;
        notify_post("com.example.heard");
        usleep(50000);
        if (notify_register_check("com.example.again", &found) != NOTIFY_STATUS_OK) continue;
        notify_check(found, &changed);
        notify_post("com.example.again");
        usleep(50000);
        notify_check(found, &changed);
        notify_cancel(found);
        if (changed) {
            dprintf(answers, "heard\n");
            break;
        }
    }
    getrusage(RUSAGE_SELF, &usage);
    long milliseconds = usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 + usage.ru_stime.tv_sec * 1000 +
                        usage.ru_stime.tv_usec / 1000;
    sleep(1);
    getrusage(RUSAGE_SELF, &usage);
    milliseconds = usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 + usage.ru_stime.tv_sec * 1000 +
                   usage.ru_stime.tv_usec / 1000 - milliseconds;
    dprintf(answers, "%s\n", milliseconds < 300 ? "rests" : "burns");
    /* The descriptors that have the numbers now are as they were. */
    int strangers = 0, touched = 0;
    for (int i = 3; i < 64; i++) {
        if (!before[i] || strcmp(argument[1], "nothing") == 0) continue;
        strangers++;
        if (fstat(i, &facts) != 0 || (S_ISREG(facts.st_mode) && facts.st_size != 0)) touched++;
    }
    char bytes[16];
    for (int i = 100; i < 200; i++) {
        if (recv(i, bytes, sizeof bytes, MSG_DONTWAIT | MSG_PEEK) >= 0) touched++;
    }
    dprintf(answers, "%s, %d touched\n", strangers || strcmp(argument[1], "nothing") == 0 ? "kept" : "none", touched);
    return 0;
}
