/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of these headers are written in Swift, in the target NotifyTokens. */
#include "notify.h"
#include "notify_keys.h"
#include "notify_private.h"
