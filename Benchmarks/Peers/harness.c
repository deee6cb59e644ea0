// SPDX-License-Identifier: Apache-2.0
//
// The half of a measuring program that is the same for all peers. bench-notifybus speaks the same protocol.
//
//     PEER observer ADDRESS INTERFACE PREFIX COUNT REPORT [each]
//     PEER poster ADDRESS INTERFACE
//
// The observer observes PREFIX, or if COUNT is over 1 PREFIX.n0, PREFIX.n1, …, and for the report 'end' PREFIX.end as
// well. It writes records of two 64-bit numbers, the time and a count, to standard output: the first when it is live,
// with the nanoseconds that took; then one for each delivery ('each'), one for every N ('every:N'), one when PREFIX.end
// has come ('end'), or one for each until the Nth, with which it ends ('last:N'). With 'stalled' it reads nothing more.
//
// The poster reads commands from standard input, one a line, and answers each with a line:
//
//     latency COUNT PAUSE NAME           nanoseconds from before a post to its record, COUNT times; then a pause, in
//                                        microseconds, of random length if negative
//     burst COUNT PREFIX NAMES FLUSH END  the times of the first post and of the last write; FLUSH: after how many
//                                        posts to flush, 0 for at the end alone; END: whether PREFIX.end follows
//     route COUNT NAME                   nanoseconds until the daemon has dealt with COUNT posts
//     steps COUNT NAME                   the same for one post at a time, COUNT times
//     register COUNT PREFIX              nanoseconds of COUNT observations of a name each, and of cancelling them
//     figures                            how many posts were made, and how many of them were merged
//
// It reads the observer's records from the descriptor that $RECORDS_FD names. Times are CLOCK_MONOTONIC in nanoseconds.

#include "peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAME_MAX_LENGTH = 512 };

static enum { EACH, EVERY, END, LAST, STALLED } report;
static int64_t report_count;
static int64_t deliveries;
static char end_name[NAME_MAX_LENGTH + 16];
static int64_t posts;

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void write_record(int64_t time, int64_t count) {
    int64_t record[2] = {time, count};
    if (write(STDOUT_FILENO, record, sizeof(record)) != sizeof(record)) exit(0); // The reader has gone.
}

void delivered(const char *name) {
    deliveries++;
    switch (report) {
    case EACH: write_record(now(), deliveries); break;
    case EVERY:
        if (deliveries % report_count == 0) write_record(now(), deliveries);
        break;
    case END:
        if (strcmp(name, end_name) == 0) write_record(now(), deliveries);
        break;
    case LAST:
        write_record(now(), deliveries);
        if (deliveries == report_count) exit(0);
        break;
    case STALLED: break;
    }
}

static void read_report(const char *text) {
    if (sscanf(text, "every:%ld", &report_count) == 1)
        report = EVERY;
    else if (sscanf(text, "last:%ld", &report_count) == 1)
        report = LAST;
    else
        report = strcmp(text, "end") == 0 ? END : strcmp(text, "stalled") == 0 ? STALLED : EACH;
}

static void observe(const char *prefix, int count, bool each) {
    char **names = calloc((size_t)count + 1, sizeof(char *));
    for (int i = 0; names && i < count; i++)
        if (asprintf(&names[i], count == 1 ? "%s" : "%s.n%d", prefix, i) < 0)
            fail("There is no memory for %d names.", count);
    snprintf(end_name, sizeof(end_name), "%s.end", prefix);
    if (report == END) names[count++] = end_name;
    int64_t began = now();
    peer_observe(names, count, each);
    int64_t live = now();
    write_record(live, live - began);
    while (report == STALLED) pause();
    peer_loop();
}

static void post(const char *name) {
    peer_post(name);
    posts++;
}

static void latency(int count, int wait, const char *name) {
    const char *records = getenv("RECORDS_FD");
    int records_fd = records ? atoi(records) : -1;
    for (int i = 0; i < count; i++) {
        int64_t record[2], began = now();
        post(name);
        peer_flush();
        if (read(records_fd, record, sizeof(record)) != sizeof(record)) fail("The observer has ended.");
        printf("%ld ", record[0] - began);
        usleep((useconds_t)(wait < 0 ? random() % -wait : wait));
    }
    putchar('\n');
}

static void burst(int count, const char *prefix, int name_count, int flush, int end) {
    static char names[64][NAME_MAX_LENGTH + 16];
    if (name_count < 1 || name_count > 64) fail("A burst has 1 to 64 names, not %d.", name_count);
    for (int i = 0; i < name_count; i++)
        snprintf(names[i], sizeof(names[i]), name_count == 1 ? "%s" : "%s.n%d", prefix, i);
    int64_t began = now();
    for (int i = 0; i < count; i++) {
        post(names[i % name_count]);
        if (flush && (i + 1) % flush == 0) peer_flush();
    }
    if (end) {
        snprintf(end_name, sizeof(end_name), "%s.end", prefix);
        post(end_name);
    }
    peer_flush();
    printf("%ld %ld\n", began, now());
}

static void route(int count, const char *name) {
    int64_t began = now();
    for (int i = 0; i < count; i++) post(name);
    peer_sync();
    printf("%ld\n", now() - began);
}

static void steps(int count, const char *name) {
    for (int i = 0; i < count; i++) {
        int64_t began = now();
        post(name);
        peer_sync();
        printf("%ld ", now() - began);
    }
    putchar('\n');
}

static void registering(int count, const char *prefix) {
    int64_t adding = 0, cancelling = 0;
    char name[NAME_MAX_LENGTH + 16], *names[] = {name};
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%s.n%d", prefix, i);
        int64_t began = now();
        peer_observe(names, 1, true);
        int64_t observed = now();
        peer_cancel();
        adding += observed - began;
        cancelling += now() - observed;
    }
    printf("%ld %ld\n", adding, cancelling);
}

static void obey(void) {
    char line[1024], name[NAME_MAX_LENGTH];
    while (fgets(line, sizeof(line), stdin)) {
        int count, a, b, c;
        if (sscanf(line, "latency %d %d %511s", &count, &a, name) == 3)
            latency(count, a, name);
        else if (sscanf(line, "burst %d %511s %d %d %d", &count, name, &a, &b, &c) == 5)
            burst(count, name, a, b, c);
        else if (sscanf(line, "route %d %511s", &count, name) == 2)
            route(count, name);
        else if (sscanf(line, "steps %d %511s", &count, name) == 2)
            steps(count, name);
        else if (sscanf(line, "register %d %511s", &count, name) == 2)
            registering(count, name);
        else
            printf("%ld 0\n", posts);
        fflush(stdout);
    }
}

int main(int count, char **arguments) {
    if (count >= 7 && strcmp(arguments[1], "observer") == 0) {
        peer_connect(arguments[2], arguments[3]);
        read_report(arguments[6]);
        observe(arguments[4], atoi(arguments[5]), count > 7);
    } else if (count == 4 && strcmp(arguments[1], "poster") == 0) {
        peer_connect(arguments[2], arguments[3]);
        obey();
    } else {
        fail("usage: %s observer ADDRESS INTERFACE PREFIX COUNT REPORT [each] | poster ADDRESS INTERFACE",
             arguments[0]);
    }
    return 0;
}
