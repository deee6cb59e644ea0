/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the windows of this session have in common: each observes names as any C program does, by <notify.h> and a
 * descriptor in its own event loop, and prints a line for each thing that happens to it.
 */
#ifndef NOTIFYBUS_SESSION_OBSERVER_H
#define NOTIFYBUS_SESSION_OBSERVER_H

/*
 * observer_start() - observe names
 * @names: ends with NULL; at most 16
 *
 * Prints "observes" when every later post is heard. A program that can't observe ends with 1.
 *
 * Return: the descriptor that is readable when there is something to hear
 */
int observer_start(char **names);

/* observer_hear() - print "heard NAME" for each notification that the descriptor has */
void observer_hear(void);

/* say() - print a line, at once also into a pipe */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fail() - say on standard error what went wrong, and end with 1 */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
