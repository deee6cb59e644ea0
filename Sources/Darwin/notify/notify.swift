// SPDX-License-Identifier: Apache-2.0

// The module that code for Apple's systems imports for notify(3). There it also brings in Dispatch and the C library,
// and code relies on that.
@_exported public import DarwinNotify
@_exported public import Dispatch
@_exported public import Glibc
