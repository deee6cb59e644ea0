// SPDX-License-Identifier: Apache-2.0

import CDarwinNotify
import NotifyTokens
import Testing

/// The header declares what the library defines: the compiler sees only one of them at a time.
@Suite struct SignatureTests {
    @Test func `each function has the signature that its header declares`() throws {
        var names: Set<String> = []
        // Compiles only if both have the same type.
        func same<Function>(_ name: String, _ declared: Function, _ defined: Function) { names.insert(name) }
        same("notify_post", notify_post, c_notify_post)
        same("notify_register_check", notify_register_check, c_notify_register_check)
        same("notify_register_signal", notify_register_signal, c_notify_register_signal)
        same("notify_register_file_descriptor", notify_register_file_descriptor, c_notify_register_file_descriptor)
        same("notify_check", notify_check, c_notify_check)
        same("notify_cancel", notify_cancel, c_notify_cancel)
        same("notify_suspend", notify_suspend, c_notify_suspend)
        same("notify_resume", notify_resume, c_notify_resume)
        same("notify_set_state", notify_set_state, c_notify_set_state)
        same("notify_get_state", notify_get_state, c_notify_get_state)
        same("notify_is_valid_token", notify_is_valid_token, c_notify_is_valid_token)
        same("notify_set_options", notify_set_options, c_notify_set_options)
        same("notify_register_plain", notify_register_plain, c_notify_register_plain)
        same("notify_peek", notify_peek, c_notify_peek)
        same("notify_monitor_file", notify_monitor_file, c_notify_monitor_file)
        same("notify_suspend_pid", notify_suspend_pid, c_notify_suspend_pid)
        same("notify_resume_pid", notify_resume_pid, c_notify_resume_pid)
        same("notify_simple_post", notify_simple_post, c_notify_simple_post)
        same("notify_get_event", notify_get_event, c_notify_get_event)
        same("notify_dump_status", notify_dump_status, c_notify_dump_status)
        same("_notify_fork_child", _notify_fork_child, c_notify_fork_child)
        // One can't be called, one takes a block, and one is not declared in Swift: C programs check these.
        names.formUnion(["notify_register_mach_port", "notify_register_dispatch", "notify_register_callback"])
        let exports = try CLibrary.shared.get().exportedNames
        #expect(names == exports)
    }
}
