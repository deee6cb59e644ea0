// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// The focus as a desktop's own script reports it, by the call SetForeground. It is valid until the desktop leaves the
/// bus.
final class ShellSource: Source {
    static let name = "shell"
    /// What desktop/kwin/notifybus-focus calls the shortcut by which it is asked.
    static let shortcut = "NotifyBus focus"

    /// The connection that reported the focus.
    private final class Desktop: ServiceClient {
        let service: FollowedService
        private let hasLeft: () -> Void

        init(_ name: String, hasLeft: @escaping () -> Void) {
            service = FollowedService(name: name, title: "the desktop", signals: [])
            self.hasLeft = hasLeft
        }

        func serviceHasCome(_ service: Service) {}
        func handle(_ signal: BusSignal) {}
        func serviceIsAway(_ reason: String) { hasLeft() }
    }

    private let link: BusLink
    private let bus: any ServiceBus
    private let asks: Bool
    private weak var driver: SourceDriver?
    private var desktop: Desktop?
    private var timer: Int?
    private var attempts = 0
    /// How often a script is asked that does not answer: perhaps there is none.
    private static let maximumAttempts = 3

    /// - Parameter asks: whether a desktop can be on this bus.
    init(_ link: BusLink, _ bus: any ServiceBus, asks: Bool) { (self.link, self.bus, self.asks) = (link, bus, asks) }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        driver.isOff("no desktop has called SetForeground yet")
    }

    func end() {
        if let desktop { bus.remove(desktop) }
        driver?.loop.cancel(timer)
        (desktop, driver, timer) = (nil, nil, nil)
    }

    /// Has KWin's script report which process has the focus; otherwise that is unknown until it changes. Scripts can't be
    /// called over the bus, but their shortcuts can be invoked, including one without a key.
    func ask() {
        attempts = 0
        askOnce()
    }

    private func askOnce() {
        guard asks else { return }
        attempts += 1
        link.findOwner(of: "org.kde.kglobalaccel") { [weak self] owner in
            guard let self, let driver, case .success(let owner) = owner else { return }
            link.tell(
                owner,
                path: "/component/kwin",
                interface: "org.kde.kglobalaccel.Component",
                member: "invokeShortcut",
                [.string(ShellSource.shortcut)]
            )
            // The answer is the script's own call.
            driver.loop.cancel(timer)
            let limit = link.answerLimit ?? BusLink.usualAnswerLimit
            timer = driver.loop.after(limit) { [weak self] in self?.isSilent(limit) }
        }
    }

    private func isSilent(_ limit: Int64) {
        timer = nil
        guard desktop == nil else { return }
        driver?.isOff(SourceFault.silence("KWin's script", "'\(ShellSource.shortcut)'", limit).reason)
        if attempts < ShellSource.maximumAttempts { askOnce() }
    }

    /// A desktop reports which process has the focus, 0 for none.
    func hear(_ name: String, _ pid: Int32) {
        driver?.loop.cancel(timer)
        timer = nil
        driver?.isLive()
        driver?.report(.fact(.focus(pid == 0 ? [] : [FocusedProcess(pid: pid)])))
        guard desktop?.service.name != name else { return }
        if let desktop { bus.remove(desktop) }
        let new = Desktop(name) { [weak self] in self?.hasLeft() }
        desktop = new
        bus.add(new)
    }

    private func hasLeft() {
        guard let old = desktop else { return }
        desktop = nil
        bus.remove(old)
        driver?.isOff("the program that called SetForeground has left the bus")
    }
}
