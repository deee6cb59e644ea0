// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The sources that need only the kernel and files.
package enum KernelSources {
    package static func make(_ source: SystemEvent.Source, _ outlet: EventOutlet) -> any EventSource {
        switch source {
        case .timezone: FileSource(outlet, FileSource.Rule.timeZone)
        case .clock: ClockSource(outlet)
        case .hostname: HostNameSource(outlet)
        case .mounts: MountSource(outlet)
        case .network: NetworkSource(outlet)
        case .dns: FileSource(outlet, FileSource.Rule.dns)
        case .memory: MemorySource(outlet)
        case .accounts: FileSource(outlet, FileSource.Rule.accounts)
        case .locale: FileSource(outlet, FileSource.Rule.locale)
        // These are not the kernel's.
        case .power, .profile, .sleep, .users, .locker, .logind, .appearance: FileSource(outlet, [])
        }
    }
}
