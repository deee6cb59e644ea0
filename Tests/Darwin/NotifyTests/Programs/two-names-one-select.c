/* SPDX-License-Identifier: Apache-2.0 */
/* select(2) on two descriptors: one for two names, by NOTIFY_REUSE, and one for the name that ends the program. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <notify.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <unistd.h>

static int next_token(int fd) {
    int token;
    if (read(fd, &token, sizeof token) != sizeof token) exit(1);
    return (int)ntohl((uint32_t)token);
}

int main(void) {
    int names, end, network, power, quit;
    if (notify_register_file_descriptor("com.example.network", &names, 0, &network) != NOTIFY_STATUS_OK ||
        notify_register_file_descriptor("com.example.power", &names, NOTIFY_REUSE, &power) != NOTIFY_STATUS_OK ||
        notify_register_file_descriptor("com.example.quit", &end, 0, &quit) != NOTIFY_STATUS_OK) {
        fprintf(stderr, "registration failed\n");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(names, &ready);
        FD_SET(end, &ready);
        if (select((names > end ? names : end) + 1, &ready, NULL, NULL, NULL) < 0) return 1;
        if (FD_ISSET(names, &ready)) {
            int token = next_token(names);
            puts(token == network ? "network" : token == power ? "power" : "?");
            fflush(stdout);
        }
        if (FD_ISSET(end, &ready) && next_token(end) == quit) break;
    }
    notify_cancel(network);
    /* The other token still uses it. */
    printf("%s\n", fcntl(names, F_GETFD) >= 0 ? "open" : "closed");
    notify_cancel(power);
    printf("%s\n", fcntl(names, F_GETFD) >= 0 ? "open" : "closed");
    notify_cancel(quit);
    return 0;
}
