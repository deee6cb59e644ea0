// SPDX-License-Identifier: Apache-2.0
//
// The floor of a command: what a process, the bus and the kernel take, whatever library and language are used.
//
//     command post NAME     posts NAME on the session bus, and ends once the bus has taken it
//     command wait NAME     subscribes to NAME, writes a line once the bus has confirmed that, and waits
//
// It makes the same round trips as libdbus, sends the same messages as notify-post and notify-wait, and of what it
// receives it looks for nothing but the serial of the reply. It is linked statically.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CALL = 1, SIGNAL = 4 };
enum { PATH = 1, INTERFACE = 2, MEMBER = 3, DESTINATION = 6, SIGNATURE = 8 };

static int bus;
static char message[4096];
static size_t length;

static void check(int is_true, const char *what) {
    if (is_true) return;
    fprintf(stderr, "command: %s\n", what);
    exit(1);
}

static void align(size_t alignment) {
    while (length % alignment) message[length++] = 0;
}

static void add_number(uint32_t number) {
    align(4);
    memcpy(message + length, &number, sizeof(number));
    length += sizeof(number);
}

static void add_string(const char *string) {
    size_t count = strlen(string);
    add_number((uint32_t)count);
    memcpy(message + length, string, count + 1);
    length += count + 1;
}

static void add_field(char field, char type, const char *value) {
    if (!value) return;
    align(8);
    char start[] = {field, 1, type, 0};
    memcpy(message + length, start, sizeof(start));
    length += sizeof(start);
    if (type == 'g') {
        message[length++] = (char)strlen(value);
        strcpy(message + length, value);
        length += strlen(value) + 1;
    } else {
        add_string(value);
    }
}

/* Sends a message with a string. See the D-Bus Specification, "Message Format". */
static void send_message(char type, uint32_t serial, const char *destination, const char *path, const char *interface,
                         const char *member, const char *argument) {
    char start[] = {'l', type, type == SIGNAL, 1};
    memcpy(message, start, sizeof(start));
    length = sizeof(start);
    add_number(argument ? (uint32_t)(4 + strlen(argument) + 1) : 0);
    add_number(serial);
    add_number(0);
    size_t fields = length;
    add_field(PATH, 'o', path);
    add_field(INTERFACE, 's', interface);
    add_field(MEMBER, 's', member);
    add_field(DESTINATION, 's', destination);
    add_field(SIGNATURE, 'g', argument ? "s" : NULL);
    uint32_t count = (uint32_t)(length - fields);
    memcpy(message + 12, &count, sizeof(count));
    align(8);
    if (argument) add_string(argument);
    check(write(bus, message, length) == (ssize_t)length, "The bus does not read.");
}

static void call(uint32_t serial, const char *member, const char *argument) {
    send_message(CALL, serial, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", member,
                 argument);
    // The field REPLY_SERIAL of the reply.
    char wanted[8] = {5, 1, 'u', 0, (char)serial};
    char bytes[8192];
    for (size_t count = 0; !memmem(bytes, count, wanted, sizeof(wanted));) {
        ssize_t more = read(bus, bytes + count, sizeof(bytes) - count);
        check(more > 0, "The bus does not answer.");
        count += (size_t)more;
    }
}

static void authenticate(void) {
    char user[16], line[128], answer[256];
    int count = sprintf(line, "AUTH EXTERNAL ");
    sprintf(user, "%u", (unsigned)getuid());
    for (const char *digit = user; *digit; digit++) count += sprintf(line + count, "%02x", (unsigned)*digit);
    count += sprintf(line + count, "\r\n");
    check(write(bus, "", 1) == 1 && write(bus, line, (size_t)count) == count, "The bus does not read.");
    check(read(bus, answer, sizeof(answer)) > 2 && memcmp(answer, "OK", 2) == 0, "The bus refuses this user.");
    check(write(bus, "NEGOTIATE_UNIX_FD\r\n", 19) == 19 && read(bus, answer, sizeof(answer)) > 0 &&
              write(bus, "BEGIN\r\n", 7) == 7,
          "The bus does not answer.");
    call(1, "Hello", NULL);
}

int main(int count, char **arguments) {
    check(count == 3, "usage: command post|wait NAME");
    const char *address = getenv("DBUS_SESSION_BUS_ADDRESS"), *start = "unix:path=";
    check(address && strncmp(address, start, strlen(start)) == 0, "The bus has no path.");
    struct sockaddr_un socket_address = {.sun_family = AF_UNIX};
    snprintf(socket_address.sun_path, sizeof(socket_address.sun_path), "%s", address + strlen(start));
    socket_address.sun_path[strcspn(socket_address.sun_path, ",;")] = 0;
    bus = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connect(bus, (struct sockaddr *)&socket_address, sizeof(socket_address)) == 0, "There is no bus.");
    authenticate();

    char interface[512], rule[1024];
    snprintf(interface, sizeof(interface), "org.notifybus.n.%s", arguments[2]);
    if (strcmp(arguments[1], "post") == 0) {
        send_message(SIGNAL, 2, NULL, "/org/notifybus", interface, "Posted", arguments[2]);
        call(3, "GetId", NULL);
        return 0;
    }
    snprintf(rule, sizeof(rule), "type='signal',path='/org/notifybus',interface='%s',member='Posted'", interface);
    call(2, "AddMatch", rule);
    check(write(STDOUT_FILENO, "live\n", 5) == 5, "Nobody reads this.");
    while (read(bus, message, sizeof(message)) > 0) {}
    return 1;
}
