/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that observes and posts through <notify.h>, and writes down what it did and heard, and when.
 *
 * Usage: witness FILE BUS-SOCKET, with one command on each line of the standard input:
 *
 *     add NAME            observes a name
 *     cancel NAME         ends that
 *     post NAME           posts
 *     get NAME            reads the state of a name that it observes
 *     fork                forks; the child uses the library, and ends
 *     cut                 shuts down the connections to the bus, as the bus would
 *     sync TEXT           says TEXT on the standard output, when everything before has been done
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. Each line of the file is a letter, the times before and after (when it was
 * heard, for H), a status, and a name. Tokens that are read at once are written at once.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <notify.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum { TOKENS = 1 << 20 };

static int out, heard = -1;
static const char *bus;
static char *names[TOKENS];

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void put(const char *text, size_t length) {
    while (length) {
        ssize_t count = write(out, text, length);
        if (count < 0 && errno != EINTR) _exit(74);
        if (count > 0) text += count, length -= count;
    }
}

static void record(char what, long long before, unsigned status, const char *name) {
    char line[700];
    put(line, snprintf(line, sizeof(line), "%c %lld %lld %u %s\n", what, before, now(), status, name));
}

static void add(const char *name) {
    int token = -1;
    long long before = now();
    uint32_t status = notify_register_file_descriptor(name, &heard, heard < 0 ? 0 : NOTIFY_REUSE, &token);
    if (status == NOTIFY_STATUS_OK && token >= 0 && token < TOKENS) names[token] = strdup(name);
    record('R', before, status, name);
}

static void cancel(const char *name) {
    for (int token = 0; token < TOKENS; token++)
        if (names[token] && strcmp(names[token], name) == 0 && notify_is_valid_token(token)) {
            long long before = now();
            record('C', before, notify_cancel(token), name);
            return;
        }
}

static void get(const char *name) {
    for (int token = 0; token < TOKENS; token++)
        if (names[token] && strcmp(names[token], name) == 0 && notify_is_valid_token(token)) {
            char text[600];
            uint64_t state = 0;
            long long before = now();
            uint32_t status = notify_get_state(token, &state);
            snprintf(text, sizeof(text), "%s %llu", name, (unsigned long long)state);
            record('G', before, status, text);
            return;
        }
}

static void cut(void) {
    long long before = now();
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        struct sockaddr_un peer;
        socklen_t length = sizeof(peer);
        int number = atoi(entry->d_name);
        memset(&peer, 0, sizeof(peer));
        if (getpeername(number, (struct sockaddr *)&peer, &length) == 0 && peer.sun_family == AF_UNIX &&
            strncmp(peer.sun_path, bus, sizeof(peer.sun_path)) == 0)
            count += shutdown(number, SHUT_RDWR) == 0;
    }
    if (folder) closedir(folder);
    record('X', before, count, "-");
}

static void fork_once(void) {
    long long before = now();
    pid_t child = fork();
    if (child == 0) {
        int token;
        uint32_t status = notify_post("c.child");
        uint32_t other = notify_register_check("c.child", &token);
        _exit(status == NOTIFY_STATUS_OPT_DISABLE && other == NOTIFY_STATUS_OPT_DISABLE ? 0 : 1);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    record('F', before, (unsigned)status, "-");
}

/* do_command() - returns only when it has been done */
static void do_command(char *line) {
    char *argument = strchr(line, ' ');
    if (argument)
        *argument++ = 0;
    else
        argument = line + strlen(line);
    if (strcmp(line, "add") == 0) {
        add(argument);
    } else if (strcmp(line, "cancel") == 0) {
        cancel(argument);
    } else if (strcmp(line, "post") == 0) {
        long long before = now();
        record('P', before, notify_post(argument), argument);
    } else if (strcmp(line, "get") == 0) {
        get(argument);
    } else if (strcmp(line, "fork") == 0) {
        fork_once();
    } else if (strcmp(line, "cut") == 0) {
        cut();
    } else if (strcmp(line, "sync") == 0) {
        char text[100];
        int length = snprintf(text, sizeof(text), "%s\n", argument);
        if (write(1, text, length) < 0) _exit(74);
    }
}

static void hear(void) {
    static char text[1024 * 80];
    uint32_t tokens[1024];
    ssize_t count = read(heard, tokens, sizeof(tokens));
    long long time = now();
    size_t length = 0;
    for (ssize_t i = 0; i < count / 4; i++) {
        uint32_t token = ntohl(tokens[i]);
        const char *name = token < TOKENS && names[token] ? names[token] : "?";
        length += snprintf(text + length, 80, "H %lld %lld 0 %s\n", time, time, name);
    }
    put(text, length);
}

int main(int count, char **arguments) {
    static char input[1 << 16];
    size_t used = 0;
    if (count != 3) return 64;
    out = open(arguments[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    bus = arguments[2];
    if (out < 0) return 73;
    /* The descriptor ends with its last token. */
    add("c.anchor");
    for (;;) {
        struct pollfd ready[2] = {{.fd = 0, .events = POLLIN}, {.fd = heard, .events = POLLIN}};
        if (poll(ready, 2, -1) < 0) continue;
        if (ready[1].revents & POLLIN) hear();
        if (!ready[0].revents) continue;
        ssize_t length = read(0, input + used, sizeof(input) - 1 - used);
        if (length <= 0) return 0;
        used += length;
        input[used] = 0;
        char *line = input, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            do_command(line);
        }
        used -= line - input;
        memmove(input, line, used);
    }
}
