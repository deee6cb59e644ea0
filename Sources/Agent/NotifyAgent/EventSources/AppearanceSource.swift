// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Whether the user wants things dark or light: the desktop's portal for settings. See org.freedesktop.portal.Settings.
final class AppearanceSource: Source, ServiceClient {
    private static let settings = "org.freedesktop.portal.Settings"
    private static let path = "/org/freedesktop/portal/desktop"
    private static let (group, key) = ("org.freedesktop.appearance", "color-scheme")

    let service = FollowedService(
        name: "org.freedesktop.portal.Desktop",
        title: "the desktop's portal",
        signals: ["interface='\(settings)',member='SettingChanged',path='\(path)',arg0='\(group)',arg1='\(key)'"],
        isActivated: true
    )
    private let bus: any ServiceBus
    private weak var driver: SourceDriver?
    private var last = LastState("org.notifybus.session.appearance")
    private var portal: Service?
    private var questions: PacedQuestion?

    init(on bus: any ServiceBus) { self.bus = bus }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        questions = PacedQuestion(on: driver.loop) { [weak self] in self?.ask() }
        bus.add(self)
    }

    func end() {
        bus.remove(self)
        (driver, portal, questions) = (nil, nil, nil)
    }

    func serviceHasCome(_ service: Service) {
        portal = service
        questions?.forget()
        questions?.want()
    }

    private func ask() {
        guard let portal else { return }
        // ReadOne would be newer; every portal has this one.
        let arguments = [BusValue.string(AppearanceSource.group), .string(AppearanceSource.key)]
        portal.call("Read", of: AppearanceSource.settings, at: AppearanceSource.path, arguments) {
            [self] answer in
            switch answer {
            case .success(let values):
                values.closeDescriptors()
                report(values.first)
            case .failure(let fault):
                driver?.isOff("the desktop's portal has no such setting: \(fault.message)")
                if fault.isPassing { portal.comeAgain() }
            }
            questions?.isAnswered()
        }
    }

    /// It may come from a part of the portal that is not responsible for the setting. So what it says does not count.
    func handle(_ signal: BusSignal) {
        guard signal.member == "SettingChanged", signal.arguments.count == 3,
            signal.arguments[0].string == AppearanceSource.group, signal.arguments[1].string == AppearanceSource.key
        else { return }
        questions?.want()
    }

    func serviceIsAway(_ reason: String) {
        portal = nil
        questions?.forget()
        driver?.isOff(reason)
    }

    private func report(_ value: BusValue?) {
        var value = value
        // Read answers with a variant in a variant.
        while case .variant(let inner)? = value { value = inner }
        let scheme = UInt64(value?.uint32 ?? 0)
        last.report(scheme <= 2 ? scheme : 0, to: driver)
        driver?.isLive()
    }
}
