// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// The values of the options of `notify-lifecycle`.
struct LifecycleSettings: CommonSettings {
    var common = CommonOptions()

    var isJSON = false
    var freezes = false
    /// How long a reply may take. The agent gives an observer 5 seconds.
    var timeout = Duration.seconds(10)
}
