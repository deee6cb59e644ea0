// SPDX-License-Identifier: Apache-2.0

// The center itself is in NotifyCore, which needs neither Dispatch nor Swift's concurrency library: the commands and
// the C library are built on it and carry neither. This module adds what a Swift program expects on top: dispatch
// queues and asynchronous sequences.
@_exported public import NotifyCore
