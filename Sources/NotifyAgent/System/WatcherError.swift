// SPDX-License-Identifier: Apache-2.0

/// The watcher could not be made.
struct WatcherError: Error {
    /// The error number.
    let code: Int32
}
