/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOTIFYBUS_CMOSQUITTO_SHIM_H
#define NOTIFYBUS_CMOSQUITTO_SHIM_H

#include <mosquitto.h>
/* From 2.1 on <mosquitto.h> includes it itself, and including it as well causes a warning. */
#if !__has_include(<mosquitto/mqtt_protocol.h>)
#include <mqtt_protocol.h>
#endif

#endif
