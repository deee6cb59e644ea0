/* SPDX-License-Identifier: Apache-2.0 */
/* What libdbus makes of a message, as text, for comparison with our own reading of the same bytes. */
#ifndef CDBUS_REFERENCE_H
#define CDBUS_REFERENCE_H

#include <stddef.h>

/*
 * reference_describe() - describe a message
 * Return: a text to be freed with reference_free(), or NULL if libdbus finds no whole, valid message in just these bytes.
 */
char *_Nullable reference_describe(const void *_Nonnull bytes, size_t length);

/* reference_free() */
void reference_free(char *_Nullable text);

#endif
