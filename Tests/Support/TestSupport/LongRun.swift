// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Whether tests try as often as they can, which takes minutes: with `NOTIFYBUS_LONG=1` in the environment.
public let isLongRun = getenv("NOTIFYBUS_LONG") != nil
