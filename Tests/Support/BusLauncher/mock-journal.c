// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE

#include "bus-launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ROOM "/run/systemd"
#define JOURNAL ROOM "/journal/socket"

/* journal_listens() - whether anything is listening on the journal's socket
 *
 * Return: 1 or 0.
 */
static int journal_listens(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = connect(fd, (struct sockaddr *)&address, sizeof(address));
    close(fd);
    return result == 0;
}

/* write_map() - writes one line to a file of /proc/self
 * @path: the file
 * @line: the line
 *
 * Exits with a message on failure.
 */
static void write_map(const char *path, const char *line) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, line, strlen(line)) < 0)
        launcher_fail(EXIT_UNAVAILABLE, "Cannot write %s: %s", path, strerror(errno));
    close(fd);
}

/* enter_namespace() - moves to a private mount namespace, through a user namespace unless run as root
 *
 * User ids stay the same in it: the bus checks those of its peers.
 */
static void enter_namespace(void) {
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) < 0)
        launcher_fail(EXIT_UNAVAILABLE,
                      "dbus-broker-launch needs a journal at " JOURNAL
                      ", and this user may not create a mount namespace for a mock: %s",
                      strerror(errno));
    if (user != 0) {
        char line[64];
        write_map("/proc/self/setgroups", "deny");
        snprintf(line, sizeof(line), "%u %u 1", user, user);
        write_map("/proc/self/uid_map", line);
        snprintf(line, sizeof(line), "%u %u 1", group, group);
        write_map("/proc/self/gid_map", line);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        launcher_fail(EXIT_UNAVAILABLE, "Cannot make the mounts private: %s", strerror(errno));
}

int mock_journal(void) {
    if (journal_listens()) return -1;
    if (mkdir(ROOM, 0755) < 0 && errno != EEXIST)
        launcher_fail(EXIT_UNAVAILABLE,
                      "dbus-broker-launch needs a journal at " JOURNAL ", and there is no " ROOM " for a mock: %s",
                      strerror(errno));
    enter_namespace();
    if (mount("tmpfs", ROOM, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755") < 0)
        launcher_fail(EXIT_UNAVAILABLE, "Cannot mount over " ROOM ": %s", strerror(errno));
    if (mkdir(ROOM "/journal", 0755) < 0)
        launcher_fail(EXIT_FAILED, "Cannot create " ROOM "/journal: %s", strerror(errno));
    return launcher_bind(JOURNAL, SOCK_DGRAM);
}
