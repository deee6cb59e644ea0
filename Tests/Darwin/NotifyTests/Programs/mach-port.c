/* SPDX-License-Identifier: Apache-2.0 */
/* Must not compile, and the compiler must say why. */
#include <notify.h>

int main(void) {
    int token, port;
    return (int)notify_register_mach_port("com.example.a", &port, 0, &token);
}
