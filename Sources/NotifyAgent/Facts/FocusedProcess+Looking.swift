// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator

extension FocusedProcess {
    /// Identifies the process.
    package init(pid: Int32) {
        var (application, user) = ("", UInt32?.none)
        if let folder = ProcessFolder(of: pid) {
            application = AppIdentity.application(ofCgroups: folder.cgroups)
            user = folder.users?.effective
        }
        self.init(pid: pid, application: application, user: user)
    }
}
