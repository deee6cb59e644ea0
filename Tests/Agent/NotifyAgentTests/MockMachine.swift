// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport
import Testing

/// The real UPower and power profiles daemon, on a private bus that takes the system bus's place. Their devices are
/// umockdev's, and polkit is python3-dbusmock's.
final class MockMachine: Sendable {
    enum Service: String {
        case upower = "org.freedesktop.UPower"
        case profiles = "net.hadess.PowerProfiles"

        var program: String {
            switch self {
            case .upower: "/usr/libexec/upowerd"
            case .profiles: "/usr/libexec/power-profiles-daemon"
            }
        }
    }

    static func isInstalled(_ service: Service) -> Bool {
        let modules = "import dbusmock.templates.polkitd, gi; gi.require_version('UMockdev', '1.0')"
        return access(service.program, X_OK) == 0 && TestSupport.isInstalled("umockdev-wrapper")
            && (try? run(python, ["-c", modules]).status) == 0
    }

    let bus: PrivateBus
    private let service: Service
    private let services: TemporaryFolder
    private let process: RunningCommand
    private let control: Mutex<RawBusClient>
    private let said = Mutex(0)

    /// - Parameter isActivated: whether the bus starts the service on demand, but not before ``letStart()``.
    init(_ service: Service, isActivated: Bool = false) throws {
        self.service = service
        services = try TemporaryFolder()
        let folder = services.path
        bus = try PrivateBus(.daemon, policy: PrivateBus.openPolicy + "<servicedir>\(folder)</servicedir>")
        control = Mutex(try RawBusClient(address: bus.address))
        process = try start(
            "umockdev-wrapper",
            [python, "-c", MockMachine.script, service.program],
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address]
        )
        if service == .profiles { try wait(for: "org.freedesktop.PolicyKit1") }
        if isActivated {
            try say("activate \(service.rawValue) \(folder)")
            try control.withLock { _ = try $0.callBus("ReloadConfig") }
        } else {
            try say("start")
            try wait(for: service.rawValue)
        }
    }

    deinit {
        process.closeInput()
        _ = try? process.wait()
    }

    private func isThere(_ name: String) throws -> Bool {
        try control.withLock { try $0.callBus("NameHasOwner", signature: "s", body: RawBusClient.stringBody(name)) }
            .body.first == 1
    }

    private func wait(for name: String) throws {
        try #require(try waitUntil { try isThere(name) }, "\(name) is not there")
    }

    var isRunning: Bool { get throws { try isThere(service.rawValue) } }

    /// Returns once the bus is starting the service, which then waits for ``letStart()``.
    func waitForStart() {
        #expect(waitUntil { access("\(services.path)/started", F_OK) == 0 })
    }

    func letStart() throws { try run("sh", ["-c", "echo >\"$0/gate\"", services.path]) }

    private func say(_ line: String) throws {
        try said.withLock { said in
            try process.writeInput(line + "\n")
            said += 1
            try process.waitForOutputLines(said)
        }
    }

    /// Changes a file of a power supply, `AC` or `BAT0`.
    func set(_ device: String, _ values: KeyValuePairs<String, String>) throws {
        for (key, value) in values { try say("set \(device) \(key) \(value)") }
        try say("change \(device)")
    }

    /// Reports that the processor is throttled by heat, or that it isn't.
    func setHot(_ isHot: Bool) throws { try say("hot \(isHot ? 1 : 0)") }

    func choose(profile: String) throws {
        let result = try run(
            "busctl",
            [
                "--address=\(bus.address)", "set-property", service.rawValue, "/net/hadess/PowerProfiles",
                service.rawValue, "ActiveProfile", "s", profile,
            ]
        )
        try #require(result.status == 0, "\(result.errorOutput)")
    }

    /// The number of connections to the bus.
    func connections() throws -> Int {
        try control.withLock { try $0.uniqueNames() }.count
    }

    func kill() throws { try say("kill") }

    func restart() throws {
        try say("start")
        try wait(for: service.rawValue)
    }

    private static let script = #"""
        import gi, os, shlex, subprocess, sys
        gi.require_version('UMockdev', '1.0')
        from gi.repository import UMockdev
        bed = UMockdev.Testbed.new()
        battery = {'type': 'Battery', 'present': '1', 'status': 'Discharging', 'energy_full': '60000000',
                   'energy_now': '34200000', 'capacity': '57', 'power_now': '0', 'voltage_now': '12000000'}
        flat = lambda values: [word for pair in values.items() for word in pair]
        paths = {'AC': bed.add_device('power_supply', 'AC', None, ['type', 'Mains', 'online', '0'], []),
                 'BAT0': bed.add_device('power_supply', 'BAT0', None, flat(battery), [])}
        def put(path, text):
            path = bed.get_root_dir() + '/sys/devices/system/cpu/' + path
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as file: file.write(text + '\n')
        put('intel_pstate/no_turbo', '0')
        put('intel_pstate/turbo_pct', '40')
        put('intel_pstate/status', 'active')
        put('cpufreq/policy0/scaling_governor', 'powersave')
        put('cpufreq/policy0/energy_performance_preference', 'performance')
        others = []
        if 'profiles' in sys.argv[1]:
            bare = {key: value for key, value in os.environ.items() if key != 'LD_PRELOAD'}
            others = [subprocess.Popen([sys.executable, '-m', 'dbusmock', '--system', '--template', 'polkitd'],
                                       env=bare, stdout=subprocess.DEVNULL)]
        daemon = None
        for line in sys.stdin:
            word = line.split()
            if word[0] == 'set': bed.set_attribute(paths[word[1]], word[2], word[3])
            elif word[0] == 'change': bed.uevent(paths[word[1]], 'change')
            elif word[0] == 'hot': put('intel_pstate/no_turbo', word[1])
            elif word[0] == 'start':
                for other in others:
                    subprocess.run(['busctl', '--address=' + os.environ['DBUS_SYSTEM_BUS_ADDRESS'], 'call',
                                    'org.freedesktop.PolicyKit1', '/org/freedesktop/PolicyKit1/Authority',
                                    'org.freedesktop.DBus.Mock', 'AllowUnknown', 'b', 'true'])
                daemon = subprocess.Popen([sys.argv[1]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            elif word[0] == 'activate':
                name, folder = line.rstrip('\n').split(' ', 2)[1:]
                os.mkfifo(folder + '/gate')
                with open(folder + '/start', 'w') as file:
                    file.write('cd %s\n: >started\nread line <gate\n' % shlex.quote(folder))
                    # The test bed has set its variable for C alone.
                    file.write("export UMOCKDEV_DIR='%s'\n" % bed.get_root_dir())
                    for variable in ['LD_PRELOAD', 'DBUS_SYSTEM_BUS_ADDRESS']:
                        file.write("export %s='%s'\n" % (variable, os.environ[variable]))
                    file.write('exec ' + sys.argv[1] + '\n')
                with open(folder + '/' + name + '.service', 'w') as file:
                    start = shlex.quote(folder + '/start')
                    file.write('[D-BUS Service]\nName=%s\nExec=/bin/sh %s\n' % (name, start))
            elif word[0] == 'kill': daemon.kill(); daemon.wait()
            print('done', flush=True)
        for child in [daemon] + others: child and child.kill()
        """#
}
