// SPDX-License-Identifier: Apache-2.0
//
// The peer on an MQTT topic, with libmosquitto: messages without acknowledgement (QoS 0), over TCP to this machine.

#include "peer.h"

#include <mosquitto.h>
#include <stdlib.h>
#include <string.h>

static struct mosquitto *client;
static char *const *observed;
static bool answered;

static void check(int result) {
    if (result != MOSQ_ERR_SUCCESS) fail("libmosquitto: %s", mosquitto_strerror(result));
}

static void await_answer(void) {
    while (!answered) check(mosquitto_loop(client, 1000, 1));
    answered = false;
}

static void on_connect(struct mosquitto *from, void *data, int result) {
    (void)from, (void)data;
    check(result);
    answered = true;
}

static void on_subscribe(struct mosquitto *from, void *data, int id, int count, const int *granted) {
    (void)from, (void)data, (void)id, (void)count, (void)granted;
    answered = true;
}

static void on_unsubscribe(struct mosquitto *from, void *data, int id) {
    (void)from, (void)data, (void)id;
    answered = true;
}

static void on_publish(struct mosquitto *from, void *data, int id) {
    (void)from, (void)data, (void)id;
    answered = true;
}

static void on_message(struct mosquitto *from, void *data, const struct mosquitto_message *message) {
    (void)from, (void)data;
    delivered(message->topic);
}

void peer_connect(const char *address, const char *interface) {
    (void)interface;
    mosquitto_lib_init();
    client = mosquitto_new(NULL, true, NULL);
    if (!client) fail("libmosquitto: out of memory");
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_subscribe_callback_set(client, on_subscribe);
    mosquitto_unsubscribe_callback_set(client, on_unsubscribe);
    mosquitto_message_callback_set(client, on_message);
    check(mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1));
    // The poster does not run the loop that would answer for it.
    check(mosquitto_connect(client, "127.0.0.1", atoi(address), 65535));
    await_answer();
}

void peer_observe(char *const *names, int count, bool each) {
    (void)each;
    observed = names;
    for (int i = 0; i < count; i++) {
        check(mosquitto_subscribe(client, NULL, names[i], 0));
        await_answer();
    }
}

void peer_cancel(void) {
    check(mosquitto_unsubscribe(client, NULL, observed[0]));
    await_answer();
}

void peer_loop(void) { check(mosquitto_loop_forever(client, -1, 1)); }

void peer_post(const char *name) { check(mosquitto_publish(client, NULL, name, 1, "1", 0, false)); }

void peer_flush(void) {
    while (mosquitto_want_write(client)) check(mosquitto_loop_write(client, 1));
}

void peer_sync(void) {
    mosquitto_publish_callback_set(client, on_publish);
    check(mosquitto_publish(client, NULL, "sync", 0, NULL, 1, false));
    await_answer();
    mosquitto_publish_callback_set(client, NULL);
}
