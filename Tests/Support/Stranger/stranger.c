// SPDX-License-Identifier: Apache-2.0
//
// A process that connects to a bus as another user, hands the connection over, and then becomes what a test needs.
//
//     stranger SOCKET-PATH UID exit            ends
//     stranger SOCKET-PATH UID stay            stays until standard input ends
//     stranger SOCKET-PATH UID exec PROGRAM    becomes that program at the first byte on standard input
//     stranger SOCKET-PATH UID chroot FOLDER   makes this its root directory, and stays
//     stranger --as PID COMMAND [ARG...]       runs a command whose process has this number: 0, or 69 where it can't
//
// The connection goes over descriptor 3, as a message with SCM_RIGHTS. Only root can connect as another user.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_USAGE = 64, EXIT_UNAVAILABLE = 69, HANDOVER = 3 };

static void check(int result, const char *what) {
    if (result >= 0) return;
    fprintf(stderr, "stranger: %s: %s.\n", what, strerror(errno));
    exit(1);
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    check(fd, "socket");
    check(connect(fd, (struct sockaddr *)&address, sizeof(address)), "connect");
    return fd;
}

static void hand_over(int fd) {
    char byte = 0;
    struct iovec part = {&byte, 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = {0};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(int));
    check((int)sendmsg(HANDOVER, &message, 0), "sendmsg");
    close(HANDOVER);
    close(fd);
}

static void wait_for_input(int until_end) {
    char byte;
    while (read(0, &byte, 1) > 0 && until_end) {}
}

static int run_as(pid_t pid, char **command) {
    struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
    pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (child < 0) {
        fprintf(stderr, "stranger: no process can be given the number %d: %s.\n", pid, strerror(errno));
        return EXIT_UNAVAILABLE;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(command[0], command);
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int count, char **arguments) {
    if (count >= 4 && strcmp(arguments[1], "--as") == 0) return run_as(atoi(arguments[2]), arguments + 3);
    if (count < 4) return EXIT_USAGE;
    uid_t user = (uid_t)strtoul(arguments[2], NULL, 10);
    const char *action = arguments[3];
    // The bus learns the effective user at the moment of connect(2).
    if (user != geteuid()) {
        check(setgroups(0, NULL), "setgroups");
        check(seteuid(user), "seteuid");
    }
    int fd = connect_to(arguments[1]);
    if (strcmp(action, "chroot") == 0 && count > 4) {
        check(seteuid(getuid()), "seteuid");
        check(chroot(arguments[4]), "chroot");
        check(chdir("/"), "chdir");
    }
    if (user != getuid()) {
        check(seteuid(0), "seteuid");
        check(setresgid(user, user, user), "setresgid");
        check(setresuid(user, user, user), "setresuid");
    }
    hand_over(fd);
    if (strcmp(action, "exit") == 0) return 0;
    if (strcmp(action, "exec") == 0 && count > 4) {
        wait_for_input(0);
        execl(arguments[4], arguments[4], (char *)NULL);
        return 127;
    }
    wait_for_input(1);
    return 0;
}
