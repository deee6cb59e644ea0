// SPDX-License-Identifier: Apache-2.0

/** What can go wrong: `code` says what, `message` is a sentence. */
export class NotifyBusError extends Error {
  constructor(code, message, busErrorName) {
    super(message)
    this.name = 'NotifyBusError'
    this.code = code
    if (busErrorName) this.busErrorName = busErrorName
  }
}
