// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// Both bus daemons.
let busKinds = BusKind.available
