// SPDX-License-Identifier: Apache-2.0

// notify(3): the functions and constants of <notify.h>, <notify_private.h> and <notify_keys.h>, as on Darwin. What takes
// a block is in this module, since a block is a closure in Swift.
@_exported public import CDarwinNotify
