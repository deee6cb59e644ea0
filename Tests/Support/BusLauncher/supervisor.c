// SPDX-License-Identifier: Apache-2.0

#include "bus-launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTEN_FD 3 // SD_LISTEN_FDS_START

/* start() - forks and executes the daemon, in a process group of its own
 * @command: null-terminated arguments, [0] is looked up in PATH
 * @listener: the daemon's first descriptor for socket activation, or -1
 * @mask: the signals to unblock again
 *
 * Return: the daemon's process id.
 */
static pid_t start(char **command, int listener, const sigset_t *mask) {
    pid_t launcher = getpid();
    pid_t child = fork();
    if (child < 0) launcher_fail(EXIT_FAILED, "Cannot fork: %s", strerror(errno));
    if (child > 0) {
        setpgid(child, child); // In both processes, whichever is first.
        return child;
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(EXIT_FAILED);
    sigprocmask(SIG_UNBLOCK, mask, NULL);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) dup2(null, STDIN_FILENO);
    if (listener >= 0) {
        char pid[16];
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        setenv("LISTEN_PID", pid, 1);
        setenv("LISTEN_FDS", "1", 1);
        if (listener == LISTEN_FD)
            fcntl(listener, F_SETFD, 0);
        else
            dup2(listener, LISTEN_FD);
    }
    execvp(command[0], command);
    fprintf(stderr, "bus-launcher: Cannot run %s: %s.\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? EXIT_UNAVAILABLE : EXIT_FAILED);
}

/* watch() - returns when the bus must end: the lifeline ended, a signal arrived, or the daemon exited
 * @daemon: the daemon's process id
 * @signals: a signalfd
 * @journal: the mock journal to drain, or -1
 *
 * Return: the daemon's wait status if it exited by itself, otherwise 0.
 */
static int watch(pid_t daemon, int signals, int journal) {
    struct pollfd sources[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = signals, .events = POLLIN},
        {.fd = journal, .events = POLLIN},
    };
    char discarded[65536];
    for (;;) {
        if (poll(sources, 3, -1) < 0) continue;
        if (sources[2].revents && recv(journal, discarded, sizeof(discarded), MSG_DONTWAIT) < 0 && errno != EAGAIN &&
            errno != EINTR)
            sources[2].fd = -1;
        if (sources[1].revents) {
            struct signalfd_siginfo information;
            int status;
            ssize_t size = read(signals, &information, sizeof(information));
            if (size == sizeof(information) && information.ssi_signo != SIGCHLD) return 0;
            if (waitpid(daemon, &status, WNOHANG) == daemon) return status;
        }
        if (sources[0].revents && read(STDIN_FILENO, discarded, sizeof(discarded)) <= 0) return 0;
    }
}

int supervise(char **command, int listener, int journal) {
    sigset_t mask;
    sigemptyset(&mask);
    for (const int *signal = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0}; *signal; signal++)
        sigaddset(&mask, *signal);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    // Orphaned grandchildren become children of the launcher, so that it can wait until the last one is gone.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t daemon = start(command, listener, &mask);
    if (listener >= 0) close(listener);
    int status = watch(daemon, signalfd(-1, &mask, SFD_CLOEXEC), journal);
    kill(-daemon, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
