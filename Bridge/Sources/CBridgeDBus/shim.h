/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOTIFYBRIDGE_CBRIDGEDBUS_SHIM_H
#define NOTIFYBRIDGE_CBRIDGEDBUS_SHIM_H

#include <dbus/dbus.h>

#endif
