// SPDX-License-Identifier: Apache-2.0

import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from './connection.js'
import { NotifyBusError } from './errors.js'
import { Lifecycle } from './lifecycle.js'
import { Subject, check, interfaceOf, isOwned, isValid, mayPost, path, staysInProcess } from './names.js'
import { CoalescingQueue } from './queue.js'
import { CALL, NO_AUTO_START } from './wire.js'

// Milliseconds between attempts to connect: the first, and the longest.
const FIRST_DELAY = 20
const LAST_DELAY = 5_000
// How many senders the bus is asked about at once, and how many answers are kept.
const QUESTION_LIMIT = 100
const USER_LIMIT = 1000
// Milliseconds for which the bus can still say who has posted a `user.uid.` name.
const OWNER_TIME = 1_000

const closed = () => new NotifyBusError('closed', 'The center is closed.')

function programName() {
  try { return fs.readFileSync('/proc/self/comm', 'utf8').trim() } catch { return '' }
}

/** Names that are observed, until it is canceled: an emitter of events, or an asynchronous iterator. */
export class Observation extends EventEmitter {
  isActive = true
  #center
  #queue = new CoalescingQueue()
  #isIterated = false
  #isScheduled = false
  #waiting = []

  constructor(center, subjects) {
    super()
    this.#center = center
    this.subjects = subjects
  }

  /** Ends it. Nothing is heard once this has returned. */
  cancel() {
    if (!this.isActive) return
    this.isActive = false
    this.#queue.clear()
    this.#center.remove(this)
    for (const fulfill of this.#waiting.splice(0)) fulfill({ done: true, value: undefined })
  }

  push(name) {
    if (!this.#queue.put(name)) this.#center.dropped++
    if (this.#waiting.length) this.#waiting.shift()({ done: false, value: this.#queue.take() })
    else this.#schedule()
  }

  // An error that a listener throws is the program's affair, and can't disturb what happens in the center.
  #schedule() {
    if (this.#isScheduled || this.#isIterated) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      if (!this.listenerCount('notification') || this.#isIterated) return
      try {
        while (this.isActive && this.#queue.length) this.emit('notification', this.#queue.take())
      } finally {
        if (this.#queue.length) this.#schedule()
      }
    })
  }

  /** Notifications that come before there is a listener wait for it. */
  on(event, listener) {
    super.on(event, listener)
    if (event === 'notification') this.#schedule()
    return this
  }

  [Symbol.asyncIterator]() {
    this.#isIterated = true
    return {
      next: async () => {
        if (!this.isActive) return { done: true, value: undefined }
        if (this.#queue.length) return { done: false, value: this.#queue.take() }
        return new Promise((fulfill) => this.#waiting.push(fulfill))
      },
      return: async () => {
        this.cancel()
        return { done: true, value: undefined }
      }
    }
  }
}

/** Posts and observes names on one bus: see index.d.ts. Methods that are not there are for this package alone. */
export class Center extends EventEmitter {
  dropped = 0
  hearsOthers = true
  program = programName()
  link = null
  topics = new Map() // By pattern: the subject, its observations, what is to be confirmed, and who waits for that.
  #prefixes = new Map()
  #lifecycle = new Lifecycle(this)
  #busID = ''
  #connecting = null
  #isClosed = false
  #isAnnounced = false
  #hasLifecycle = false
  #outbox = new CoalescingQueue()
  #flushes = []
  #users = new Map()
  #held = new Map()
  #hasPosted = false
  #ownedUntil = 0

  constructor({ bus } = {}) {
    super()
    this.bus = bus
  }

  get isConnected() { return this.link !== null }
  get state() { return this.#lifecycle.state }

  // --- Posting ---

  async post(name) {
    check(name)
    if (!staysInProcess(name)) await this.#ready()
    this.postSoon(name)
    await this.flush()
  }

  postSoon(name) {
    check(name)
    if (this.#isClosed) throw closed()
    if (staysInProcess(name)) return this.hear(name)
    if (!this.#outbox.put(name)) throw new NotifyBusError('queueFull', '65,536 names wait to be written.')
    if (this.link) this.#pump()
    else this.#startConnecting().catch(() => {})
  }

  async flush() {
    if (!this.link && !this.#outbox.length) return
    await this.#ready()
    await new Promise((fulfill, reject) => {
      this.#flushes.push({ fulfill, reject })
      this.#pump()
    })
  }

  #pump() {
    while (this.link?.isWritable && this.#outbox.length) {
      // As many as one call of the system takes.
      const names = []
      while (names.length < 64 && this.#outbox.length) names.push(this.#outbox.take())
      this.link.post(names)
      this.#hasPosted = true
      if (names.some(isOwned)) this.#ownedUntil = performance.now() + OWNER_TIME
    }
    if (!this.link || this.#outbox.length || !this.#flushes.length) return
    const flushes = this.#flushes.splice(0)
    this.link.callBus('GetId', [], (_, error) => {
      for (const { fulfill, reject } of flushes) error ? reject(error) : fulfill()
    })
  }

  // --- Observing ---

  async observe(patterns, listener) {
    if (this.#isClosed) throw closed()
    const subjects = [...new Set([patterns].flat())].map((pattern) => new Subject(pattern))
    if (!subjects.length) throw new NotifyBusError('invalidName', 'There must be at least one name.')
    const observation = new Observation(this, subjects)
    if (listener) observation.on('notification', listener)
    const live = []
    for (const subject of subjects) {
      let topic = this.topics.get(subject.pattern)
      if (!topic) {
        topic = { subject, users: new Set(), pending: new Set(subject.isSent ? ['agent', 'rule'] : []), waiting: [] }
        this.topics.set(subject.pattern, topic)
        if (subject.isPrefix) this.#prefixes.set(subject.pattern, topic)
        if (subject.isSent && this.#hasLifecycle) {
          this.#lifecycle.added(subject)
          this.#putRule(topic)
        }
      }
      topic.users.add(observation)
      if (subject.isSent) live.push(new Promise((fulfill, reject) => topic.waiting.push({ fulfill, reject })))
    }
    const all = Promise.all(live)
    all.catch(() => {})
    try {
      if (live.length) {
        await this.#ready()
        if (!this.#hasLifecycle) this.#beginObserving(false, false)
        this.confirmAll()
        await all
      }
    } catch (error) {
      observation.cancel()
      throw error
    }
    return observation
  }

  async next(patterns, { timeout, onceLive } = {}) {
    let timer
    const late = new Promise((_, reject) => {
      if (timeout === undefined) return
      timer = setTimeout(() => reject(new NotifyBusError('timedOut', `Nothing was posted within ${timeout} ms.`)), timeout)
    })
    const observing = this.observe(patterns)
    try {
      const observation = await Promise.race([observing, late])
      await onceLive?.()
      const { done, value } = await Promise.race([observation[Symbol.asyncIterator]().next(), late])
      if (done) throw closed()
      return value
    } finally {
      clearTimeout(timer)
      observing.then((observation) => observation.cancel(), () => {})
    }
  }

  async report(state) { await this.#lifecycle.report(state) }

  remove(observation) {
    for (const subject of observation.subjects) {
      const topic = this.topics.get(subject.pattern)
      if (!topic?.users.delete(observation) || topic.users.size) continue
      this.topics.delete(subject.pattern)
      this.#prefixes.delete(subject.pattern)
      if (this.#hasLifecycle && subject.isSent) {
        this.withdrawRules([topic])
        this.#lifecycle.removed(topic.subject)
      }
    }
  }

  #beginObserving(wasCutOff, isOnAnotherBus) {
    this.#hasLifecycle = true
    this.#lifecycle.connected(wasCutOff, isOnAnotherBus)
  }

  #putRule(topic) {
    const { link } = this
    // Where nothing is to be heard, or by the relay alone, there are no rules.
    if (!link || !this.#lifecycle.hasRules || this.#lifecycle.hearsByRelay) return this.confirm(topic.subject, 'rule')
    const { rules } = topic.subject
    let left = rules.length
    for (const rule of rules) {
      link.callBus('AddMatch', [rule], (_, error) => {
        left--
        if (this.link === link && this.topics.get(topic.subject.pattern) === topic && (error || !left)) {
          this.confirm(topic.subject, 'rule', error)
        }
      })
    }
  }

  putRules() { for (const topic of [...this.topics.values()]) this.#putRule(topic) }

  withdrawRules(topics = this.topics.values()) {
    if (!this.link || !this.#lifecycle.hasRules || this.#lifecycle.hearsByRelay) return
    for (const { subject } of topics) for (const rule of subject.rules) this.link.callBus('RemoveMatch', [rule])
  }

  confirm(subject, what, error) {
    const topic = this.topics.get(subject.pattern)
    if (!topic) return
    topic.pending.delete(what)
    topic.error ??= error
    this.confirmAll([topic])
  }

  /** Tells those who wait what is live now. */
  confirmAll(topics = [...this.topics.values()]) {
    if (!this.link || !this.#lifecycle.hasEntered) return
    for (const topic of topics) {
      if (!topic.error && topic.pending.size) continue
      for (const { fulfill, reject } of topic.waiting.splice(0)) topic.error ? reject(topic.error) : fulfill()
    }
    if (!this.#isAnnounced && ![...this.topics.values()].some((topic) => topic.pending.size)) this.#announceConnection()
  }

  announce(...event) { queueMicrotask(() => this.emit(...event)) }

  #announceConnection(error) {
    this.#isAnnounced = !error
    if (error) this.announce('disconnected', error)
    else this.announce('connected')
  }

  // --- Hearing ---

  #take(message) {
    if (message.kind === CALL) this.#lifecycle.handleCall(message)
    else if (message.member === 'Posted' && message.destination === undefined) this.#takePost(message)
    else if (this.#hasLifecycle) this.#lifecycle.handleSignal(message)
  }

  /** Anyone can send anything, so this believes only posts of names that their senders may post. */
  #takePost({ signature, sender, path: sentTo, interface: sentAs, body }) {
    if (signature !== 's') return
    const [name] = body()
    if (!isValid(name) || staysInProcess(name) || sentTo !== path(name) || sentAs !== interfaceOf(name)) return
    if (!this.#lifecycle.isOpen) {
      this.dropped++
    } else if (this.#held.has(sender)) {
      // Posts of one sender are heard in order.
      this.#held.get(sender).put(name)
    } else if (!isOwned(name) || this.#users.has(sender)) {
      if (mayPost(name, this.#users.get(sender))) this.hear(name)
    } else if (this.#held.size < QUESTION_LIMIT) {
      const names = new CoalescingQueue()
      names.put(name)
      this.#held.set(sender, names)
      this.link.callBus('GetConnectionUnixUser', [sender], (answer) => this.#release(sender, names, answer?.body()[0]))
    } else {
      this.dropped++
    }
  }

  #release(sender, names, user) {
    if (user !== undefined) {
      if (this.#users.size >= USER_LIMIT) this.#users.clear()
      this.#users.set(sender, user)
    }
    if (this.#held.get(sender) === names) this.#held.delete(sender)
    while (names.length) {
      const name = names.take()
      if (mayPost(name, user)) this.hear(name)
    }
  }

  hear(name) {
    if (!this.#lifecycle.isOpen && !staysInProcess(name)) return void this.dropped++
    const audience = new Set()
    // A prefix is found below, even if a posted name looks like one.
    const topic = this.topics.get(name)
    if (topic && !topic.subject.isPrefix) for (const each of topic.users) audience.add(each)
    for (const { subject, users } of this.#prefixes.values()) {
      if (subject.includes(name)) for (const each of users) audience.add(each)
    }
    for (const observation of audience) if (observation.isActive) observation.push(name)
  }

  // --- The connection ---

  async #ready() {
    if (this.#isClosed) throw closed()
    if (!this.link) await this.#startConnecting()
  }

  #startConnecting() {
    this.#connecting ??= this.#open().finally(() => { this.#connecting = null })
    return this.#connecting
  }

  async #open() {
    const link = await Connection.open(this.bus, { message: (message) => this.#take(message), lost: (error) => this.#lost(error) })
    if (this.#isClosed) {
      link.close()
      throw closed()
    }
    const wasHere = this.#busID === link.busID
    const isFirst = !this.#hasLifecycle
    this.#busID = link.busID
    this.link = link
    link.onWritable = () => this.#pump()
    if ([...this.topics.values()].some(({ subject }) => subject.isSent)) {
      this.#beginObserving(!isFirst && wasHere, !isFirst && !wasHere)
    } else {
      this.#announceConnection()
    }
    this.#pump()
  }

  #lost(error) {
    this.link = null
    this.#lifecycle.lost()
    for (const topic of this.topics.values()) {
      topic.pending = new Set(topic.subject.isSent ? ['agent', 'rule'] : [])
      topic.error = undefined
    }
    this.#held.clear()
    this.#users.clear()
    for (const { reject } of this.#flushes.splice(0)) reject(error)
    this.#announceConnection(error)
    if (this.topics.size || this.#outbox.length) this.#reconnect()
  }

  async #reconnect() {
    for (let delay = FIRST_DELAY; !this.link && !this.#isClosed && (this.topics.size || this.#outbox.length); delay = Math.min(delay * 2, LAST_DELAY)) {
      try {
        await this.#ready()
      } catch {
        await sleep(delay)
      }
    }
  }

  async close() {
    if (this.#isClosed) return
    await this.#sayGoodbye().catch(() => {})
    this.#isClosed = true
    for (const topic of [...this.topics.values()]) {
      for (const { reject } of topic.waiting.splice(0)) reject(closed())
      for (const each of [...topic.users]) each.cancel()
    }
    this.#lifecycle.limit()
    this.link?.close()
    this.link = null
  }

  /** The bus can say who has posted only as long as the poster is connected. */
  async #sayGoodbye() {
    await this.flush()
    if (!this.link || !this.#hasPosted) return
    const options = { interface: 'org.freedesktop.DBus.Peer', flags: NO_AUTO_START, time: OWNER_TIME }
    // An error means that no agent starts programs.
    await this.link.ask('org.notifybus.Launch1', '/org/notifybus/Agent1', 'Ping', '', [], options).catch(() => {})
    await sleep(Math.max(0, this.#ownedUntil - performance.now()))
  }
}
