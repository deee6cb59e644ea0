// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

extension [BusValue] {
    /// Closes the descriptors among values: nothing here requests any, but anyone can send them.
    func closeDescriptors() {
        for value in self {
            switch value {
            case .descriptor(let descriptor): if descriptor >= 0 { close(descriptor) }
            case .array(_, let values), .structure(let values): values.closeDescriptors()
            case .entry(let key, let value): [key, value].closeDescriptors()
            case .variant(let value): [value].closeDescriptors()
            case .number, .double, .text: break
            }
        }
    }
}
