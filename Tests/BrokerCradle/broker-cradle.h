// SPDX-License-Identifier: Apache-2.0

#pragma once

enum {
        EXIT_FAILED = 1,
        EXIT_USAGE = 64,
        EXIT_UNAVAILABLE = 69,
};

/* cradle_fail() - prints one sentence to standard error and exits
 * @status: the exit code
 * @format: the sentence without its full stop, as for printf()
 */
void cradle_fail(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* cradle_bind() - makes a Unix socket at a path, in place of a stale one
 * @path: where
 * @type: SOCK_STREAM, which then listens, or SOCK_DGRAM
 *
 * Exits with a sentence where that can't be done.
 *
 * Return: the socket, close-on-exec.
 */
int cradle_bind(const char *path, int type);

/* journal_stand_in() - sees to it that there is a journal to log to
 *
 * dbus-broker-launch will not start without one. Where none listens, this process moves to a mount namespace of its
 * own, in which a socket of ours takes the journal's place. The rest of the machine sees nothing of it.
 *
 * Exits with a sentence where that can't be done.
 *
 * Return: the socket, to be drained for ever, or -1 if the machine has a journal.
 */
int journal_stand_in(void);

/* supervise() - runs a daemon until it exits, a signal comes or standard input ends, then kills all that is left of it
 * @command: null-terminated arguments, [0] is looked up in PATH
 * @listener: what the daemon gets as its first descriptor for socket activation, or -1; closed here
 * @journal: the stand-in journal to drain meanwhile, or -1
 *
 * Return: the daemon's exit code, 128 + n if signal n ended it, 0 if it was killed here.
 */
int supervise(char **command, int listener, int journal);
