// SPDX-License-Identifier: Apache-2.0

const INDIVIDUAL_LIMIT = 4096
const LIMIT = 65536

/** Up to 4,096 names are queued individually. Beyond that each name waits once, up to 65,536 in all. */
export class CoalescingQueue {
  #names = []
  #head = 0
  // How often each name waits. Kept only once the queue has become long, as it is usually short.
  #counts = null

  get length() { return this.#names.length - this.#head }

  /** Queues a name, unless one that waits stands for it; tells whether there was room. */
  put(name) {
    if (this.length >= INDIVIDUAL_LIMIT) {
      if (!this.#counts) {
        this.#counts = new Map()
        for (const each of this.#names.slice(this.#head)) this.#counts.set(each, (this.#counts.get(each) ?? 0) + 1)
      }
      if (this.#counts.has(name)) return true
      if (this.length >= LIMIT) return false
    }
    this.#names.push(name)
    this.#counts?.set(name, (this.#counts.get(name) ?? 0) + 1)
    return true
  }

  /** The first name, which waits no longer. */
  take() {
    const name = this.#names[this.#head++]
    if (this.#counts) {
      const count = this.#counts.get(name) - 1
      if (count) this.#counts.set(name, count)
      else this.#counts.delete(name)
      if (this.length < INDIVIDUAL_LIMIT / 2) this.#counts = null
    }
    if (this.#head >= 64 && this.#head * 2 >= this.#names.length) {
      this.#names.splice(0, this.#head)
      this.#head = 0
    }
    return name
  }

  clear() {
    this.#names = []
    this.#head = 0
    this.#counts = null
  }
}
