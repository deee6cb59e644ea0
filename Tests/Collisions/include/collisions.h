// SPDX-License-Identifier: Apache-2.0
#pragma once

enum { COLLIDING_NAME_SIZE = 253 };

typedef struct colliding_name {
        char text[COLLIDING_NAME_SIZE];
} colliding_name;

/* colliding_names() - makes different texts that all have the same 64-bit FNV-1a hash
 * @names: where they go, each with a NUL behind it
 * @count: how many; up to 65,536
 *
 * Takes about a second and 150 MB.
 *
 * Return: how many were made; fewer than wanted only where memory ran out.
 */
int colliding_names(colliding_name *names, int count);
