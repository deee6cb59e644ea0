// SPDX-License-Identifier: Apache-2.0
//
// What a peer is made of: a way to observe names, and a way to post them. harness.c calls these functions and measures;
// each peer is one file that has them, written as its library's documentation suggests.

#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stdint.h>

/* peer_connect() - opens the connection, and ends the program with a sentence if that fails
 * @address: a D-Bus address, the path of a socket, a folder: whatever the peer needs
 * @interface: the interface of the signals; peers without a bus ignore it
 */
void peer_connect(const char *address, const char *interface);

/* peer_observe() - observes names; when it returns, later posts are heard
 * @names: the names
 * @count: how many
 * @each: whether there is a match rule for each name (arg0). Without, one rule for the interface matches them all.
 */
void peer_observe(char *const *names, int count, bool each);

/* peer_cancel() - undoes peer_observe() of one name with a rule of its own, the last one that was observed */
void peer_cancel(void);

/* peer_loop() - hands every name that arrives to delivered(), and does not return */
void peer_loop(void);

/* peer_post() - posts a name; need not be written when it returns */
void peer_post(const char *name);

/* peer_flush() - returns when all that was posted is written */
void peer_flush(void);

/* peer_sync() - returns when the daemon has dealt with all that was posted */
void peer_sync(void);

/* delivered() - counts a name that has arrived, and reports it if that was asked for */
void delivered(const char *name);

/* fail() - ends the program with a sentence on standard error */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

#endif
