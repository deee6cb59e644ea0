// SPDX-License-Identifier: Apache-2.0
//
// The peer on a Redis channel, with hiredis: PUBLISH and SUBSCRIBE, over a Unix socket.

#include "peer.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

static redisContext *context;
static int unanswered;

static redisReply *next_reply(void) {
    void *reply = NULL;
    if (redisGetReply(context, &reply) != REDIS_OK) fail("hiredis: %s", context->errstr);
    return reply;
}

void peer_connect(const char *address, const char *interface) {
    (void)interface;
    context = redisConnectUnix(address);
    if (!context || context->err) fail("hiredis: %s", context ? context->errstr : "out of memory");
}

void peer_observe(char *const *names, int count, bool each) {
    (void)each;
    for (int i = 0; i < count; i++) redisAppendCommand(context, "SUBSCRIBE %s", names[i]);
    for (int i = 0; i < count; i++) freeReplyObject(next_reply());
}

void peer_cancel(void) {
    redisAppendCommand(context, "UNSUBSCRIBE");
    freeReplyObject(next_reply());
}

void peer_loop(void) {
    for (;;) {
        redisReply *reply = next_reply();
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && strcmp(reply->element[0]->str, "message") == 0)
            delivered(reply->element[1]->str);
        freeReplyObject(reply);
    }
}

void peer_post(const char *name) {
    redisAppendCommand(context, "PUBLISH %s 1", name);
    unanswered++;
}

void peer_flush(void) {
    for (; unanswered > 0; unanswered--) freeReplyObject(next_reply());
}

void peer_sync(void) { peer_flush(); }
