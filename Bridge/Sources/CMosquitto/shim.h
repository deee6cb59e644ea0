/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOTIFYBRIDGE_CMOSQUITTO_SHIM_H
#define NOTIFYBRIDGE_CMOSQUITTO_SHIM_H

#include <mosquitto.h>
#include <mqtt_protocol.h>

#endif
