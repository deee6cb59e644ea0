// SPDX-License-Identifier: Apache-2.0

#pragma once

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 64,
    EXIT_UNAVAILABLE = 69,
};

/* launcher_fail() - prints one sentence to standard error and exits
 * @status: the exit code
 * @format: the sentence without its full stop, as for printf()
 */
void launcher_fail(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* launcher_bind() - creates a Unix socket at a path, replacing a stale one
 * @path: the path
 * @type: SOCK_STREAM, which then listens, or SOCK_DGRAM
 *
 * Exits with a message on failure.
 *
 * Return: the socket, close-on-exec.
 */
int launcher_bind(const char *path, int type);

/* mock_journal() - provides a journal to log to
 *
 * dbus-broker-launch doesn't start without one. If none is listening, this process moves to a mount namespace of its
 * own, in which a socket of ours takes the journal's place. The rest of the machine is not affected.
 *
 * Exits with a message on failure.
 *
 * Return: the socket, to be drained forever, or -1 if the machine has a journal.
 */
int mock_journal(void);

/* supervise() - runs a daemon until it exits, a signal arrives or standard input ends, then kills what is left of it
 * @command: null-terminated arguments, [0] is looked up in PATH
 * @listener: the daemon's first descriptor for socket activation, or -1; closed here
 * @journal: the mock journal to drain in the meantime, or -1
 *
 * Return: the daemon's exit code, 128 + n if signal n ended it, 0 if it was killed here.
 */
int supervise(char **command, int listener, int journal);
