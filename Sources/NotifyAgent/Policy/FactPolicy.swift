// SPDX-License-Identifier: Apache-2.0

/// Which facts may put whom in the background. What the configuration file sets.
package struct FactPolicy: Sendable {
    /// Who is in the foreground only while it has the focus.
    package enum FocusFollowers: Sendable {
        /// Those that ask for it themselves.
        case volunteers
        /// These applications as well.
        case applications(Set<String>)
        /// Everyone.
        case everyone
        /// Nobody, whatever a program asks for.
        case nobody
    }

    /// Whether an inactive or locked session puts its programs in the background.
    package var sessionCounts = true
    /// Whether programs are in the background while the machine goes to sleep.
    package var sleepCounts = false
    package var focusFollowers = FocusFollowers.volunteers
    /// The sources that are not to be asked at all, by name.
    package var ignoredSources: Set<String> = []

    package init() {}

    /// Whether a connection is to follow the focus.
    ///
    /// - Parameter wishes: whether it has asked for that.
    package func followsFocus(application: String, wishes: Bool) -> Bool {
        switch focusFollowers {
        case .volunteers: wishes
        case .applications(let ids): wishes || ids.contains(application)
        case .everyone: true
        case .nobody: false
        }
    }
}
