/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify(3), told by lines what to do: see Bindings/README.md. It has neither prefixes nor news of the connection.
 */
#include <arpa/inet.h>
#include <notify.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS = 1 << 16, LINE = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char *observers[TOKENS], *words[TOKENS];
static int heard = -1, is_slow;

static void say(const char *first, const char *second, const char *third) {
    pthread_mutex_lock(&lock);
    printf("%s%s%s%s%s\n", first, second ? " " : "", second ? second : "", third ? " " : "", third ? third : "");
    fflush(stdout);
    pthread_mutex_unlock(&lock);
}

/* consume() - says what is heard, unless it has to be slow */
static void *consume(void *unused) {
    int token;
    while (read(heard, &token, sizeof(token)) == sizeof(token)) {
        token = ntohl(token);
        pthread_mutex_lock(&lock);
        while (is_slow) pthread_cond_wait(&changed, &lock);
        /* The pipe still has the tokens of observers that were canceled meanwhile. */
        if (token >= 0 && token < TOKENS && observers[token]) {
            printf("heard %s %s\n", observers[token], words[token]);
            fflush(stdout);
        }
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* decode() - the name of a word
 *
 * Return: 0, or -1 if C can't say it.
 */
static int decode(const char *word, char *name, size_t size) {
    size_t count = 0;
    if (word[0] != 'n') return -1;
    for (word++; word[0] && word[1] && count + 1 < size; word += 2) {
        char digits[3] = {word[0], word[1], 0};
        name[count] = (char)strtol(digits, NULL, 16);
        if (!name[count++]) return -1;
    }
    name[count] = 0;
    return 0;
}

static const char *kind(uint32_t status) {
    switch (status) {
    case NOTIFY_STATUS_INVALID_NAME: return "invalid";
    case NOTIFY_STATUS_SERVER_NOT_FOUND: return "nobus";
    default: return "failed";
    }
}

static const char *observe(char *rest) {
    char name[2048], *observer = strtok_r(rest, " ", &rest), *word;
    while ((word = strtok_r(NULL, " ", &rest))) {
        int token = -1;
        if (decode(word, name, sizeof(name))) return "unsupported";
        /* Its token must be known before it is heard. */
        pthread_mutex_lock(&lock);
        uint32_t status = notify_register_file_descriptor(name, &heard, NOTIFY_REUSE, &token);
        if (status == NOTIFY_STATUS_OK && token >= 0 && token < TOKENS) {
            observers[token] = strdup(observer);
            words[token] = strdup(word);
        }
        pthread_mutex_unlock(&lock);
        if (status != NOTIFY_STATUS_OK) return kind(status);
    }
    return NULL;
}

static const char *cancel(const char *observer) {
    uint32_t status = NOTIFY_STATUS_OK;
    pthread_mutex_lock(&lock);
    for (int token = 0; token < TOKENS; token++)
        if (observers[token] && strcmp(observers[token], observer) == 0) {
            observers[token] = NULL;
            status |= notify_cancel(token);
        }
    pthread_mutex_unlock(&lock);
    return status == NOTIFY_STATUS_OK ? NULL : "failed";
}

static const char *post(const char *word, int count) {
    char name[2048];
    if (decode(word, name, sizeof(name))) return "unsupported";
    while (count--) {
        uint32_t status = notify_post(name);
        if (status != NOTIFY_STATUS_OK) return kind(status);
    }
    return NULL;
}

static const char *perform(char *line) {
    char *rest = line, *verb = strtok_r(line, " ", &rest);
    if (strcmp(verb, "observe") == 0) return observe(rest);
    if (strcmp(verb, "cancel") == 0) return cancel(rest);
    if (strcmp(verb, "post") == 0) return post(rest, 1);
    if (strcmp(verb, "many") == 0) {
        char *count = strtok_r(NULL, " ", &rest);
        return post(rest, atoi(count));
    }
    if (strcmp(verb, "slow") == 0 || strcmp(verb, "fast") == 0) {
        pthread_mutex_lock(&lock);
        is_slow = verb[0] == 's';
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    return "unsupported";
}

int main(void) {
    static char line[LINE];
    int token;
    pthread_t thread;
    /* The descriptor is closed with its last token. This one stays, and needs no bus. */
    if (notify_register_file_descriptor("self.keep", &heard, 0, &token) != NOTIFY_STATUS_OK ||
        pthread_create(&thread, NULL, consume, NULL))
        return 71;
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        const char *error = perform(line);
        if (error)
            say("failed", error, NULL);
        else
            say("done", NULL, NULL);
    }
    return 0;
}
