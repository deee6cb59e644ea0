// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CRunLoop
import Dispatch

/// Runs the run loop of the current thread: that of Foundation, if the program has it.
///
/// Without Foundation there are no run loops. On the main thread this then serves the main queue and does not return,
/// like `dispatchMain()`; on others it returns at once, as a run loop that has nothing to wait for does.
///
/// The corresponding C function is `CFRunLoopRun`.
public func CFRunLoopRun() {
    if !notifybus_run_loop() { dispatchMain() }
}
