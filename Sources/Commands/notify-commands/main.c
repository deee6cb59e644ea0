/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In C, because that is where main() gets the arguments as the kernel passed them. Swift's CommandLine reads them from
 * /proc, which may not be mounted.
 */

/* Sources/Commands/Commands has it. */
int notify_commands(char **arguments);

int main(int count, char **arguments) {
    (void)count;
    return notify_commands(arguments);
}
