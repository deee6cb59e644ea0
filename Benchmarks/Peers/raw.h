// SPDX-License-Identifier: Apache-2.0
//
// A connection to a bus that does without a library once it stands: the floor. libdbus only connects and makes the bytes
// that are to be sent.

#ifndef RAW_H
#define RAW_H

#include <stdbool.h>

#define RAW_PATH "/org/notifybus"
#define RAW_MEMBER "Posted"

/* raw_connect() - opens the connection */
void raw_connect(const char *address);

/* raw_observe() - adds a match rule for the signals of an interface
 * Return: the socket, from which they are to be read.
 */
int raw_observe(const char *interface);

/* raw_add_rule() - adds a match rule
 * @waits: whether it is live when this returns
 */
void raw_add_rule(const char *rule, bool waits);

/* raw_unique_name() - by which the bus knows the connection */
const char *raw_unique_name(void);

/* raw_signal() - makes the bytes of a signal with a name
 * @destination: NULL if it is for everybody
 * @bytes: what is freed and replaced
 */
void raw_signal(const char *interface, const char *name, const char *destination, char **bytes, int *length);

/* raw_socket() - what the bus said at the beginning is read; from here on only the caller reads and writes, and waits */
int raw_socket(void);

#endif
