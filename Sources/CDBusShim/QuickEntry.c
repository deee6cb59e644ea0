/* SPDX-License-Identifier: Apache-2.0 */

#include "QuickEntry.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { GUID_LENGTH = 32 };

/* Whether a GUID begins here, and nothing but `end` follows it. */
static bool is_guid(const char *text, const char *end) {
    for (int i = 0; i < GUID_LENGTH; i++) {
        if (!isxdigit((unsigned char)text[i])) return false;
    }
    return strcmp(text + GUID_LENGTH, end) == 0;
}

/* Reads an address with nothing but a path, in which no byte is escaped, and maybe a GUID. */
static bool read_address(nb_quick *quick, const char *address, struct sockaddr_un *socket_address) {
    static const char start[] = "unix:path=", guid[] = ",guid=";
    if (strncmp(address, start, sizeof start - 1) != 0) return false;
    const char *path = address + sizeof start - 1;
    size_t length = strcspn(path, ",;%");
    if (*path != '/' || length >= sizeof socket_address->sun_path) return false;
    memcpy(socket_address->sun_path, path, length);
    const char *rest = path + length;
    if (*rest == '\0') return true;
    if (strncmp(rest, guid, sizeof guid - 1) != 0 || !is_guid(rest + sizeof guid - 1, "")) return false;
    memcpy(quick->expected_guid, rest + sizeof guid - 1, GUID_LENGTH);
    return true;
}

int nb_quick_enter(nb_quick *quick, const char *address) {
    struct sockaddr_un socket_address = {.sun_family = AF_UNIX};
    if (!read_address(quick, address, &socket_address)) return -1;
    char user[16], said[128] = "\0AUTH EXTERNAL ";
    size_t count = 1 + strlen(said + 1);
    snprintf(user, sizeof user, "%u", (unsigned)geteuid());
    for (const char *digit = user; *digit != '\0'; digit++)
        count += (size_t)snprintf(said + count, sizeof said - count, "%02x", (unsigned)*digit);
    count += (size_t)snprintf(said + count, sizeof said - count, "\r\nNEGOTIATE_UNIX_FD\r\n");

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&socket_address, sizeof socket_address) == 0 &&
        send(fd, said, count, MSG_NOSIGNAL) == (ssize_t)count)
        return fd;
    close(fd);
    return -1;
}

/* Whether the bus lets us in: these are the answers to AUTH and NEGOTIATE_UNIX_FD. */
static bool is_let_in(nb_quick *quick) {
    static const char ok[] = "OK ";
    quick->text[quick->length] = '\0';
    if (strncmp(quick->text, ok, sizeof ok - 1) != 0 || !is_guid(quick->text + sizeof ok - 1, "\r\nAGREE_UNIX_FD\r\n"))
        return false;
    memcpy(quick->guid, quick->text + sizeof ok - 1, GUID_LENGTH);
    return *quick->expected_guid == '\0' || strcasecmp(quick->guid, quick->expected_guid) == 0;
}

/* Ends the authentication. There is no answer to that. */
static bool begin(int fd) {
    static const char said[] = "BEGIN\r\n";
    return send(fd, said, sizeof said - 1, MSG_NOSIGNAL) == sizeof said - 1;
}

nb_entry_state nb_quick_read(nb_quick *quick, int fd) {
    char bytes[sizeof quick->text];
    size_t room = sizeof quick->text - 1;
    while (quick->length < room) {
        /* What follows the answers is not for us. */
        ssize_t count = recv(fd, bytes, room - quick->length, MSG_PEEK);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return NB_ENTERING;
        if (count <= 0) return NB_REFUSED;
        ssize_t own = 0;
        while (own < count && quick->lines < 2) {
            quick->text[quick->length++] = bytes[own];
            if (bytes[own++] == '\n') quick->lines++;
        }
        if (recv(fd, bytes, (size_t)own, 0) != own) return NB_REFUSED;
        if (quick->lines == 2) return is_let_in(quick) && begin(fd) ? NB_LET_IN : NB_REFUSED;
        /* REJECTED: what the bus says next is not about us any more. */
        if (quick->lines == 1 && quick->text[0] != 'O') return NB_REFUSED;
    }
    return NB_REFUSED;
}
