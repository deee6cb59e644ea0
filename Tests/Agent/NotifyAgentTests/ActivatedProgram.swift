// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport

/// A program that the bus starts: it owns a name and observes others, in one process and in either order.
enum ActivatedProgram {
    static let name = "com.example.Active"

    /// Whether it is available here.
    static let isPossible: Bool = (try? run(python, ["-c", "import dbus"]).status) == 0

    /// It writes each name that it hears as a line to the file `heard`, and exits after the last of the names.
    private static let script = """
        import ctypes, dbus, os, sys
        library = ctypes.CDLL(sys.argv[1])
        steps, names = sys.argv[2].split(), sys.argv[3:]
        descriptor = ctypes.c_int(-1)
        of_token = {}
        def observe():
            for name in names:
                token = ctypes.c_int()
                status = library.notify_register_file_descriptor(
                    name.encode(), ctypes.byref(descriptor), 1 if of_token else 0, ctypes.byref(token))
                if status: sys.exit(status)
                of_token[token.value] = name
        def own():
            global bus
            bus = dbus.SessionBus()
            bus.request_name("\(name)")
        for step in steps: globals()[step]()
        while True:
            name = of_token[int.from_bytes(os.read(descriptor.value, 4), "big")]
            with open(os.environ["HOME"] + "/heard", "a") as heard: heard.write(name + "\\n")
            if name == names[-1]: break
        """

    /// - Parameter order: `own observe` or `observe own`.
    static func install(in session: UserSession, _ order: String, _ names: [String]) throws {
        let files = ["\(session.home)/program.py", try productPath("libnotifybus.so")].map(serviceWord)
        let command = "\(python) \(files.joined(separator: " ")) \"\(order)\" "
        let service = "[D-BUS Service]\nName=\(name)\nExec=\(command)\(names.joined(separator: " "))\n"
        try session.shell(
            """
            mkdir -p "$HOME/.local/share/dbus-1/services"
            cat >"$HOME/program.py" <<'END'
            \(script)
            END
            cat >"$HOME/.local/share/dbus-1/services/\(name).service" <<'END'
            \(service)END
            busctl --user call org.freedesktop.DBus / org.freedesktop.DBus ReloadConfig >/dev/null
            """
        )
    }
}
