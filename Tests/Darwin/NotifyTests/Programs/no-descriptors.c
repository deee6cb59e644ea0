/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions return when the process may open no file. */
#include <notify.h>
#include <stdio.h>
#include <sys/resource.h>

int main(void) {
    const struct rlimit none = {3, 3};
    int token;
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 1;
    unsigned int posted = notify_post("com.example.a");
    unsigned int registered = notify_register_check("com.example.a", &token);
    printf("%u %u %d\n", posted, registered, token);
    return 0;
}
