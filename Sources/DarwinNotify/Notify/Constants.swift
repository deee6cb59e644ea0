// SPDX-License-Identifier: Apache-2.0

// The names are Darwin's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// The constants of <notify.h> and <notify_private.h>, as Swift imports them on Darwin: a status is a `UInt32`, these
// are of type `Int32`, and `==` compares the two. The C declarations are not imported here, so no name is declared
// twice; a test compares the values.

/// Success.
public var NOTIFY_STATUS_OK: Int32 { 0 }
/// The name is empty, longer than 511 bytes, or not UTF-8.
public var NOTIFY_STATUS_INVALID_NAME: Int32 { 1 }
/// There is no such registration, or it was cancelled.
public var NOTIFY_STATUS_INVALID_TOKEN: Int32 { 2 }
/// Not used here: there are no Mach ports.
public var NOTIFY_STATUS_INVALID_PORT: Int32 { 3 }
/// `NOTIFY_REUSE` with a descriptor that is not from this library.
public var NOTIFY_STATUS_INVALID_FILE: Int32 { 4 }
/// There is no signal with this number.
public var NOTIFY_STATUS_INVALID_SIGNAL: Int32 { 5 }
/// Not possible for this token, or not on Linux.
public var NOTIFY_STATUS_INVALID_REQUEST: Int32 { 6 }
/// The name, or the process, belongs to someone else.
public var NOTIFY_STATUS_NOT_AUTHORIZED: Int32 { 7 }
/// The library is disabled, or this is the child of a process that used it.
public var NOTIFY_STATUS_OPT_DISABLE: Int32 { 8 }
/// There is no bus; for state and processes: no lifecycle agent.
public var NOTIFY_STATUS_SERVER_NOT_FOUND: Int32 { 9 }
/// A required argument is nil.
public var NOTIFY_STATUS_NULL_INPUT: Int32 { 10 }
/// Anything else: memory, descriptors, a bus that does not answer in time.
public var NOTIFY_STATUS_FAILED: Int32 { 1_000_000 }

/// A flag of ``notify_register_file_descriptor(_:_:_:_:)``: deliver through the given descriptor.
public var NOTIFY_REUSE: Int32 { 1 }
/// Never a valid token.
public var NOTIFY_TOKEN_INVALID: Int32 { -1 }

/// For ``notify_set_options(_:)``. Has no effect: always enabled here.
public var NOTIFY_OPT_DISPATCH: Int32 { 0x0000_0001 }
/// For ``notify_set_options(_:)``. Has no effect: always enabled here.
public var NOTIFY_OPT_REGEN: Int32 { 0x0000_0002 }
/// For ``notify_set_options(_:)``. Has no effect here: it concerns Darwin's sandbox.
public var NOTIFY_OPT_FILTERED: Int32 { 0x0000_0004 }
/// For ``notify_set_options(_:)``. Has no effect here: it concerns Darwin's daemon.
public var NOTIFY_OPT_OLD_IPC: Int32 { 0x0000_0008 }
/// For ``notify_set_options(_:)``: enables the library again.
public var NOTIFY_OPT_ENABLE: Int32 { 0x0400_0000 }
/// For ``notify_set_options(_:)``: disables the library in this process.
public var NOTIFY_OPT_DISABLE: Int32 { 0x0800_0000 }

/// A flag of ``notify_register_file_descriptor(_:_:_:_:)``. Has no effect.
public var NOTIFY_NO_DISPATCH: UInt32 { 0x8000_0000 }
