// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The sources that need only the kernel and files.
package enum KernelSources {
    package static func make(_ source: SystemEvent.Source, _ reporter: EventReporter) -> any EventSource {
        switch source {
        case .timezone: FileSource(reporter, FileSource.Rule.timeZone)
        case .clock: ClockSource(reporter)
        case .hostname: HostNameSource(reporter)
        case .mounts: MountSource(reporter)
        case .network: NetworkSource(reporter)
        case .dns: FileSource(reporter, FileSource.Rule.dns)
        case .memory: MemorySource(reporter)
        case .accounts: FileSource(reporter, FileSource.Rule.accounts)
        case .locale: FileSource(reporter, FileSource.Rule.locale)
        // These are not the kernel's.
        case .power, .profile, .sleep, .users, .locker, .logind, .appearance: FileSource(reporter, [])
        }
    }
}
