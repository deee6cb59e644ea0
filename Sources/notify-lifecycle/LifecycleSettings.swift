// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// What the options of `notify-lifecycle` were set to.
struct LifecycleSettings: CommonSettings {
    var common = CommonOptions()

    var isJSON = false
    var freezes = false
    /// How long an answer may take. The agent gives an observer 5 seconds.
    var timeout = Duration.seconds(10)
}
