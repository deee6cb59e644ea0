// SPDX-License-Identifier: Apache-2.0

package import CommandSupport

extension Program {
    package static var notifyPost: Program { Program(PostCommand.command, run: PostCommand.run) }
}
