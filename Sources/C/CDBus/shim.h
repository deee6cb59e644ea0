/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOTIFYBUS_CDBUS_SHIM_H
#define NOTIFYBUS_CDBUS_SHIM_H

#include <dbus/dbus.h>

#endif
