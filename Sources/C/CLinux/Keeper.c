/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a command with a process above it that knows when all that the command has started has ended. */

#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tells the program a value, or an error as a negative number. */
static void tell(int pipe, int value) {
    while (write(pipe, &value, sizeof value) < 0 && errno == EINTR) {}
}

_Noreturn static void run(char *const *arguments, char *const *environment, bool has_no_input, int pipe) {
    // Before it is executed, so that any process that knows its number can signal all of it.
    setpgid(0, 0);
    if (has_no_input) {
        int input = open("/dev/null", O_RDONLY);
        if (input > 0) {
            dup2(input, STDIN_FILENO);
            close(input);
        }
    }
    // The only signal that we ignore ourselves.
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvpe(arguments[0], arguments, environment);
    tell(pipe, -errno);
    _exit(127);
}

/* Closes what was inherited, all but one: a connection to a bus ends with the program that has made it. */
static void close_all_but(int kept) {
    dup2(kept, STDIN_FILENO);
    if (close_range(1, ~0U, 0) == 0) return;
    // Linux 5.8 and before, or a sandbox.
    struct rlimit limit;
    int count = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
    for (int descriptor = 1; descriptor < count; descriptor++) close(descriptor);
}

/* Processes that the command leaves behind become our children when their parents have ended. */
_Noreturn static void keep(char *const *arguments, char *const *environment, bool has_no_input, int begin, int end) {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid_t command = _Fork();
    if (command == 0) run(arguments, environment, has_no_input, begin);
    tell(begin, command < 0 ? -errno : command);
    close_all_but(end);
    int result = 0;
    while (true) {
        int status;
        pid_t ended = waitpid(-1, &status, 0);
        if (ended == command) result = status;
        if (ended < 0 && errno != EINTR) break;
    }
    tell(STDIN_FILENO, result);
    _exit(0);
}

/* Whether the command runs: what the pipe says until its other end is closed, which executing the command does. */
static int take_begin(int pipe, pid_t *command) {
    int error = 0, value;
    while (true) {
        long count = read(pipe, &value, sizeof value);
        if (count < 0 && errno == EINTR) continue;
        if (count != sizeof value) break;
        if (value < 0)
            error = -value;
        else
            *command = value;
    }
    return error != 0 ? error : *command == 0 ? ECHILD : 0;
}

int linux_start_kept(char *const *arguments, char *const *environment, bool has_no_input, linux_kept *kept) {
    int begin[2], end[2];
    if (pipe2(begin, O_CLOEXEC) < 0) return errno;
    if (pipe2(end, O_CLOEXEC | O_NONBLOCK) < 0) {
        int error = errno;
        close(begin[0]);
        close(begin[1]);
        return error;
    }
    // No signal may end the keeper, whichever process it was meant for.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // Other threads may hold locks: the child takes none, nor do handlers of pthread_atfork(3) run.
    pid_t keeper = _Fork();
    if (keeper == 0) keep(arguments, environment, has_no_input, begin[1], end[1]);
    int error = keeper < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(begin[1]);
    close(end[1]);
    *kept = (linux_kept){.keeper = keeper, .result = end[0]};
    if (error == 0) error = take_begin(begin[0], &kept->command);
    close(begin[0]);
    if (error == 0) return 0;
    close(end[0]);
    while (keeper > 0 && waitpid(keeper, NULL, 0) < 0 && errno == EINTR) {}
    return error;
}
