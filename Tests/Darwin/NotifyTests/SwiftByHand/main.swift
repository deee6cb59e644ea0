// SPDX-License-Identifier: Apache-2.0

// A program that declares notify(3) itself, as many do that were written before there was a module, and imports nothing
// of ours. Scripts/check/dependents has it as a package.
// The names are Darwin's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Glibc

@_silgen_name("notify_post")
func notify_post(_ name: UnsafePointer<CChar>) -> UInt32
@_silgen_name("notify_register_check")
func notify_register_check(_ name: UnsafePointer<CChar>, _ token: UnsafeMutablePointer<Int32>) -> UInt32
@_silgen_name("notify_register_signal")
func notify_register_signal(_ name: UnsafePointer<CChar>, _ sig: Int32, _ token: UnsafeMutablePointer<Int32>) -> UInt32
@_silgen_name("notify_register_file_descriptor")
func notify_register_file_descriptor(
    _ name: UnsafePointer<CChar>,
    _ fd: UnsafeMutablePointer<Int32>,
    _ flags: Int32,
    _ token: UnsafeMutablePointer<Int32>
) -> UInt32
@_silgen_name("notify_register_mach_port")
func notify_register_mach_port(
    _ name: UnsafePointer<CChar>,
    _ port: UnsafeMutablePointer<UInt32>,
    _ flags: Int32,
    _ token: UnsafeMutablePointer<Int32>
) -> UInt32
@_silgen_name("notify_check")
func notify_check(_ token: Int32, _ check: UnsafeMutablePointer<Int32>) -> UInt32
@_silgen_name("notify_suspend")
func notify_suspend(_ token: Int32) -> UInt32
@_silgen_name("notify_resume")
func notify_resume(_ token: Int32) -> UInt32
@_silgen_name("notify_set_state")
func notify_set_state(_ token: Int32, _ state: UInt64) -> UInt32
@_silgen_name("notify_get_state")
func notify_get_state(_ token: Int32, _ state: UnsafeMutablePointer<UInt64>) -> UInt32
@_silgen_name("notify_is_valid_token")
func notify_is_valid_token(_ token: Int32) -> Bool
@_silgen_name("notify_cancel")
func notify_cancel(_ token: Int32) -> UInt32

let name = "com.example.by-hand"
var checking: Int32 = 0
var waiting: Int32 = 0
var signalled: Int32 = 0
var own: Int32 = 0
var none: Int32 = 0
var port: UInt32 = 0
var descriptor: Int32 = -1
var changed: Int32 = 0
var state: UInt64 = 0
var heard: Int32 = 0

signal(SIGUSR1, SIG_IGN)
let statuses = [
    notify_register_check(name, &checking),
    notify_register_file_descriptor(name, &descriptor, 0, &waiting),
    notify_register_signal(name, SIGUSR1, &signalled),
    notify_register_check("self.by-hand", &own),
    notify_register_mach_port(name, &port, 0, &none),
    notify_check(checking, &changed),
    notify_suspend(waiting),
    notify_post(name),
    notify_resume(waiting),
    notify_set_state(own, 42),
    notify_get_state(own, &state),
]
read(descriptor, &heard, 4)
let isRight =
    statuses == [0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0] && Int32(bigEndian: heard) == waiting && changed == 1 && state == 42
    && notify_is_valid_token(own) && !notify_is_valid_token(none) && none == -1
    && notify_cancel(waiting) == 0 && notify_cancel(waiting) == 2
print(isRight ? "every function returned what it should" : "\(statuses)")
exit(isRight ? 0 : 1)
