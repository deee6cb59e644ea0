// SPDX-License-Identifier: Apache-2.0
//
// Runs a private bus that never outlives the program that started it.
//
//     bus-launcher SOCKET-PATH CONFIG-FILE    dbus-broker, through dbus-broker-launch, listening at SOCKET-PATH
//     bus-launcher --exec COMMAND [ARG...]    any other daemon
//     bus-launcher --check                    exits with 0 if dbus-broker can run here, with 69 and a reason if not
//
// Standard input is the lifeline: when it ends, everything below the launcher is killed, even stopped processes. A pipe
// whose write end only the caller holds ends however the caller dies. PR_SET_PDEATHSIG alone is not enough: it fires
// when the *thread* that forked exits, and doesn't reach grandchildren. Here it only covers the death of the launcher.

#include "bus-launcher.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BROKER "dbus-broker-launch"

void launcher_fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bus-launcher: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs(".\n", stderr);
    va_end(arguments);
    exit(status);
}

int launcher_bind(const char *path, int type) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        launcher_fail(EXIT_USAGE, "%s is too long for a socket: the limit is %zu bytes", path,
                      sizeof(address.sun_path) - 1);
    strcpy(address.sun_path, path);
    if (unlink(path) < 0 && errno != ENOENT)
        launcher_fail(EXIT_FAILED, "Cannot remove the stale socket %s: %s", path, strerror(errno));
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    // Connecting requires write permission, which the umask withholds from other users. The bus policy decides
    // who may stay.
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, 0666) < 0 ||
        (type == SOCK_STREAM && listen(fd, SOMAXCONN) < 0))
        launcher_fail(EXIT_FAILED, "Cannot create the socket %s: %s", path, strerror(errno));
    return fd;
}

/* installed() - whether a program of this name is in PATH
 * @name: the program
 *
 * Return: 1 or 0.
 */
static int installed(const char *name) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char candidate[4096];
        int written = snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)length, path, name);
        if (written < (int)sizeof(candidate) && access(candidate, X_OK) == 0) return 1;
        path += length + (path[length] == ':');
    }
    return 0;
}

/* set_bus_address() - gives dbus-broker-launch the address of its bus, because it is also a client of the bus
 * @path: the socket
 */
static void set_bus_address(const char *path) {
    char address[16 + 3 * 108] = "unix:path=";
    char *end = address + strlen(address);
    for (; *path; path++)
        end += sprintf(end, isalnum((unsigned char)*path) || strchr("-_/.", *path) ? "%c" : "%%%02x",
                       (unsigned char)*path);
    setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
}

int main(int count, char **arguments) {
    int check = count == 2 && strcmp(arguments[1], "--check") == 0;
    int other = count >= 3 && strcmp(arguments[1], "--exec") == 0;
    if (!check && !other && count != 3)
        launcher_fail(EXIT_USAGE, "Usage: bus-launcher SOCKET-PATH CONFIG-FILE | --exec COMMAND [ARG...] | --check");

    char configuration[4096 + 16];
    char *launch[] = {BROKER, configuration, "--scope", "user", NULL};
    char **command = launch;
    int listener = -1, journal = -1;
    if (other) {
        command = arguments + 2;
    } else {
        if (!installed(BROKER)) launcher_fail(EXIT_UNAVAILABLE, BROKER " is not installed");
        journal = mock_journal();
        if (check) return 0;
        snprintf(configuration, sizeof(configuration), "--config-file=%s", arguments[2]);
        listener = launcher_bind(arguments[1], SOCK_STREAM);
        set_bus_address(arguments[1]);
    }

    return supervise(command, listener, journal);
}
