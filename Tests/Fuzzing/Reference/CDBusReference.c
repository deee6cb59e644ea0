/* SPDX-License-Identifier: Apache-2.0 */
#include "CDBusReference.h"

#include <dbus/dbus.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe_values(FILE *text, DBusMessageIter *values) {
    for (int type; (type = dbus_message_iter_get_arg_type(values)) != DBUS_TYPE_INVALID;
         dbus_message_iter_next(values)) {
        DBusBasicValue value = {.u64 = 0};
        DBusMessageIter inside;
        switch (type) {
        case DBUS_TYPE_ARRAY:
        case DBUS_TYPE_STRUCT:
        case DBUS_TYPE_DICT_ENTRY:
        case DBUS_TYPE_VARIANT:
            dbus_message_iter_recurse(values, &inside);
            fputc(type, text);
            if (type == DBUS_TYPE_ARRAY) {
                char *element = dbus_message_iter_get_signature(&inside);
                fputs(element, text);
                dbus_free(element);
            }
            fputc('[', text);
            describe_values(text, &inside);
            fputc(']', text);
            break;
        case DBUS_TYPE_STRING:
        case DBUS_TYPE_OBJECT_PATH:
        case DBUS_TYPE_SIGNATURE:
            dbus_message_iter_get_basic(values, &value);
            fprintf(text, "%c%zu:%s", type, strlen(value.str), value.str);
            break;
        case DBUS_TYPE_UNIX_FD:
            /* Without descriptors libdbus does not say which one it is. */
            fputc('h', text);
            break;
        case DBUS_TYPE_BYTE:
            dbus_message_iter_get_basic(values, &value);
            fprintf(text, "y%u", value.byt);
            break;
        case DBUS_TYPE_INT16:
        case DBUS_TYPE_UINT16:
            dbus_message_iter_get_basic(values, &value);
            fprintf(text, "%c%u", type, value.u16);
            break;
        case DBUS_TYPE_BOOLEAN:
        case DBUS_TYPE_INT32:
        case DBUS_TYPE_UINT32:
            dbus_message_iter_get_basic(values, &value);
            fprintf(text, "%c%" PRIu32, type, value.u32);
            break;
        default:
            dbus_message_iter_get_basic(values, &value);
            fprintf(text, "%c%" PRIu64, type, value.u64);
            break;
        }
        fputc(' ', text);
    }
}

static void describe_field(FILE *text, const char *title, const char *value) {
    if (value != NULL) fprintf(text, "%s=%s\n", title, value);
}

char *reference_describe(const void *bytes, size_t length) {
    char *result = NULL;
    size_t size = 0;
    DBusMessageIter arguments;
    if (length > INT32_MAX || dbus_message_demarshal_bytes_needed(bytes, (int)length) != (int)length) return NULL;
    DBusMessage *message = dbus_message_demarshal(bytes, (int)length, NULL);
    if (message == NULL) return NULL;
    FILE *text = open_memstream(&result, &size);
    fprintf(text, "type=%d serial=%" PRIu32 " reply=%" PRIu32 " silent=%d\n", dbus_message_get_type(message),
            dbus_message_get_serial(message), dbus_message_get_reply_serial(message),
            dbus_message_get_no_reply(message) != 0);
    describe_field(text, "path", dbus_message_get_path(message));
    describe_field(text, "interface", dbus_message_get_interface(message));
    describe_field(text, "member", dbus_message_get_member(message));
    describe_field(text, "error", dbus_message_get_error_name(message));
    describe_field(text, "destination", dbus_message_get_destination(message));
    describe_field(text, "sender", dbus_message_get_sender(message));
    fprintf(text, "signature=%s\n", dbus_message_get_signature(message));
    if (dbus_message_iter_init(message, &arguments)) describe_values(text, &arguments);
    fclose(text);
    dbus_message_unref(message);
    return result;
}

void reference_free(char *text) { free(text); }
