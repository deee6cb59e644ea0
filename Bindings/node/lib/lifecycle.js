// SPDX-License-Identifier: Apache-2.0
// The observer's half of the lifecycle protocol: what Documentation/lifecycle-protocol.md calls an observer. It hands out
// no duplicate of its socket, so an agent can't park it; and it says nothing to the agent that it need not answer, so it
// is never behind.

import fs from 'node:fs'
import process from 'node:process'
import { BUS, BUS_PATH } from './connection.js'
import { NotifyBusError } from './errors.js'

const AGENT = { name: 'org.notifybus.Agent1', path: '/org/notifybus/Agent1', time: 2_000 }
// Nothing is heard without it.
const RELAY = { name: 'org.notifybus.Relay1', path: '/org/notifybus/Relay1', time: 10_000 }
const OBSERVER = { name: 'org.notifybus.Observer1', path: '/org/notifybus/Observer1' }
// More names mean that another call follows.
const DELIVERY_LIMIT = 4096
// Milliseconds until it registers again with an agent that has refused it.
const FIRST_DELAY = 250
const LAST_DELAY = 60_000

/** Whether a proxy keeps the posts of others from this program, which a relay may hear for it. */
function needsRelay(bus) {
  const wish = process.env.NOTIFYBUS_RELAY
  if (wish === 'yes' || wish === 'no') return wish === 'yes' && bus !== 'system'
  let text
  try { text = fs.readFileSync('/.flatpak-info', 'utf8') } catch { return false }
  const shared = /^sockets=(.*)$/m.exec(text)?.[1].split(';') ?? []
  return !shared.includes(bus === 'system' ? 'system-bus' : 'session-bus')
}

/** Names and prefixes, as the agent is told them. */
function texts(subjects) {
  const sent = [...subjects].filter((each) => each.isSent)
  return [sent.filter((each) => !each.isPrefix).map((each) => each.text), sent.filter((each) => each.isPrefix).map((each) => each.text)]
}

/** Where a center stands with the agent, and what that means for what it hears. */
export class Lifecycle {
  state = 'foreground'
  isOpen = true // Whether posts pass,
  hasRules = true // and whether the bus is to send them.
  hasEntered = false // Whether the agent has said in which state the connection begins, or there is none.
  hearsByRelay = false
  #agent = ''
  #candidate = ''
  #former = ''
  #service = AGENT
  #search = 0 // Counts, so that late answers can be told.
  #change = 0
  #known = '' // The unique name by which the agent may know this program.
  #decider = 'default'
  #reported = ''
  #kept = new Map()
  #missed = new Set()
  // Whether there were posts with unknown names, or may have been, and whether the agent is to deliver some.
  #isUnknown = false
  #isDoubtful = false
  #expectsDelivery = false
  #wasCutOff = false
  #delay = FIRST_DELAY
  #untold = new Set()
  #isTelling = false
  #timer
  #center

  constructor(center) { this.#center = center }

  get #link() { return this.#center.link }

  // --- The connection ---

  connected(wasCutOff, isOnAnotherBus) {
    this.hearsByRelay = needsRelay(this.#center.bus)
    this.#service = this.hearsByRelay ? RELAY : AGENT
    this.hasRules = this.isOpen
    this.#wasCutOff = wasCutOff
    // The name of that bus may be another's here. Its own replaces none, but says that it is not new.
    if (isOnAnotherBus && this.#known) [this.#known, this.#former] = [this.#link.name, '']
    this.#link.callBus('AddMatch', [`type='signal',sender='${BUS}',interface='${BUS}',member='NameOwnerChanged',arg0='${this.#service.name}'`])
    // Before the agent is asked, so that every post is heard from its answer on.
    this.#center.putRules()
    this.#find('')
  }

  lost() {
    this.#former = this.#agent || this.#former
    this.#agent = this.#candidate = ''
    this.hasEntered = this.#isTelling = false
    this.#search++
    this.#change++
    this.#untold.clear()
    this.#isUnknown ||= this.#wasCutOff || this.state === 'suspended'
    this.limit()
  }

  limit(time) {
    clearTimeout(this.#timer)
    if (time) this.#timer = setTimeout(() => this.#giveUp(), time)
  }

  async #find(owner) {
    const search = ++this.#search
    const link = this.#link
    this.#agent = this.#candidate = ''
    this.limit(this.#service.time)
    const ask = async (member, signature, ...values) => (await link.ask(BUS, BUS_PATH, member, signature, values))[0]
    const { name } = this.#service
    let isTrusted = false
    try {
      owner ||= await ask('GetNameOwner', 's', name).catch(async () => {
        await ask('StartServiceByName', 'su', name, 0)
        return ask('GetNameOwner', 's', name)
      })
      // It may silence the program, so it must be root or the program's own user.
      const [user, own] = await Promise.all([owner, link.name].map((each) => ask('GetConnectionUnixUser', 's', each)))
      isTrusted = user === 0 || user === own
    } catch (error) {
      if (!(error instanceof NotifyBusError)) throw error
    }
    if (search !== this.#search) return
    if (isTrusted) this.#register(owner, search)
    else this.#ended()
  }

  #register(agent, search) {
    this.#candidate = agent
    const reported = [...this.#center.topics.keys()].map((key) => this.#center.topics.get(key).subject)
    const [names, prefixes] = texts(reported)
    const options = {
      names: ['as', names],
      prefixes: ['as', prefixes],
      state: ['s', this.state],
      decider: ['s', this.#decider],
      previous: ['s', this.#known],
      program: ['s', this.#center.program],
      states: ['a(stt)', [...this.#kept].map(([name, entry]) => [name, ...entry])]
    }
    if (this.#reported) options.reported = ['s', this.#reported]
    this.#untold.clear()
    const then = (answer) => {
      if (search !== this.#search) return
      if (!answer) {
        // Its user may have had too many calls pending for a moment.
        this.#delay = Math.min(this.#delay * 2, LAST_DELAY)
        setTimeout(() => { if (search === this.#search && this.#link && !this.#agent) this.#find(agent) }, this.#delay).unref()
      }
      this.#ended(answer?.body(), reported)
    }
    this.#link.call(agent, this.#service.path, 'Register', 'a{sv}', [options], { interface: this.#service.name, then })
  }

  /** The agent has answered, has refused, or does not exist. */
  #ended(answer, reported) {
    const [state, pending, isComplete] = answer ?? ['', [], false]
    this.#agent = answer ? this.#candidate : ''
    this.#candidate = ''
    if (answer) [this.#known, this.#delay] = [this.#link.name, FIRST_DELAY]
    const isInDoubt = this.#wasCutOff || this.#isDoubtful || this.#former !== '' && this.#former !== this.#agent
    this.#isUnknown ||= isInDoubt && !isComplete
    this.#former = ''
    this.#isDoubtful = this.#wasCutOff = false
    this.#expectsDelivery = state === 'foreground' && isComplete
    if (!answer && this.hearsByRelay) {
      // It observes as if it were outside of a sandbox, and hears what its proxy lets in.
      this.hearsByRelay = this.#center.hearsOthers = false
      this.#center.putRules()
    }
    if (answer || this.state === 'foreground') {
      this.limit()
      this.#changeTo(answer ? state : 'foreground', pending)
    }
    const known = answer ? reported : [...this.#center.topics.values()].map((topic) => topic.subject)
    for (const subject of known) this.#center.confirm(subject, 'agent')
    this.#tell()
  }

  /** No agent has answered in time. */
  #giveUp() {
    this.#search++
    if (this.#candidate || !this.hasEntered) {
      this.#candidate = ''
      this.#ended()
    }
    this.#isUnknown ||= this.#isDoubtful
    this.#isDoubtful = false
    this.#decider = 'default'
    this.#changeTo('foreground', [])
  }

  #ownerChanged(owner) {
    if (owner && (owner === this.#agent || owner === this.#candidate)) return
    this.#isDoubtful ||= this.state === 'suspended' || this.#expectsDelivery
    this.#expectsDelivery = false
    if (this.hearsByRelay && this.#agent) this.#isUnknown = true
    if (owner || this.#service === RELAY) {
      this.hearsByRelay = this.#service === RELAY
      this.#find(owner)
    } else if (this.#agent || this.#candidate) {
      this.#search++
      this.#agent = this.#candidate = ''
      this.limit(AGENT.time)
    }
  }

  // --- What the agent is told ---

  added(subject) {
    if (this.#candidate || this.#agent || !this.hasEntered) {
      this.#untold.add(subject)
      this.#tell()
    } else {
      this.#center.confirm(subject, 'agent')
    }
  }

  removed(subject) {
    this.#untold.delete(subject)
    if (this.#agent) this.#call('RemoveNames', 'asas', texts([subject]))
  }

  #call(member, signature, values, options) {
    this.#link.call(this.#agent, this.#service.path, member, signature, values, { interface: this.#service.name, ...options })
  }

  /** One call at a time, with everything that was added meanwhile. */
  #tell() {
    if (this.#candidate || this.#isTelling || !this.#untold.size || !this.hasEntered) return
    const told = [...this.#untold]
    const search = this.#search
    this.#untold.clear()
    const confirm = (error) => { for (const subject of told) this.#center.confirm(subject, 'agent', error) }
    if (!this.#agent) return confirm()
    this.#isTelling = true
    const then = (answer, error) => {
      this.#isTelling = false
      if (search === this.#search) {
        // Without it, the names that are posted while the program is suspended are unknown.
        if (!answer && this.state === 'suspended') this.#isUnknown = true
        confirm(this.hearsByRelay ? error : undefined)
      }
      this.#tell()
    }
    this.#call('AddNames', 'asas', texts(told), { then, time: this.#service.time })
  }

  async report(state) {
    if (!this.#agent) throw new NotifyBusError('noAgent', 'There is no lifecycle agent, or this program observes nothing.')
    await this.#link.ask(this.#agent, this.#service.path, 'Report', 's', [state], { interface: this.#service.name })
    this.#reported = state
  }

  // --- What the agent says ---

  handleSignal(message) {
    if (message.member === 'NameOwnerChanged' && message.sender === BUS) {
      const [name, , owner] = message.body()
      if (name === this.#service.name) this.#ownerChanged(owner)
    } else if (message.member === 'Decided' && message.interface === this.#service.name && message.signature === 's') {
      if ([this.#agent, this.#candidate].includes(message.sender)) [this.#decider] = message.body()
    }
  }

  handleCall(call) {
    // Strangers are answered, but not while the bus has a lot to take.
    if (call.sender !== this.#agent && !this.#link.isWritable) return
    const refuse = (error, text) => this.#link.reply(call, 's', [text], `${BUS}.Error.${error}`)
    if (call.interface !== OBSERVER.name || call.path !== OBSERVER.path) return refuse('UnknownMethod', 'There is no such method.')
    if (!this.#agent || call.sender !== this.#agent) return refuse('AccessDenied', 'Only the lifecycle agent may do this.')
    switch (`${call.member} ${call.signature}`) {
      case 'SetState su': {
        const [state] = call.body()
        this.#expectsDelivery = state === 'foreground' && this.state !== 'background'
        return this.#changeTo(state, [], call)
      }
      case 'Deliver as': {
        const [names] = call.body()
        this.#expectsDelivery &&= names.length >= DELIVERY_LIMIT
        this.#deliver(names)
        break
      }
      case 'DeliverPosts asas':
        if (this.#service === RELAY) for (const name of call.body()[0]) this.#center.hear(name)
        break
      case 'KeepStates a(stt)':
        // The next agent learns these from this connection, if this agent dies.
        for (const [name, ...entry] of call.body()[0]) {
          if ([...this.#center.topics.values()].some((topic) => topic.subject.includes(name))) this.#kept.set(name, entry)
        }
        break
      case 'Mark t':
        return
      default:
        return refuse('UnknownMethod', 'There is no such method.')
    }
    this.#link.reply(call)
  }

  // --- States ---

  /** Changes the state. It is in force, and the agent gets its answer, when the bus has nothing else on its way. */
  #changeTo(state, pending, call) {
    const change = ++this.#change
    const link = this.#link
    if (state === 'foreground') {
      for (const name of pending) this.#missed.add(name)
      if (this.#isUnknown) {
        // A spurious notification beats silence.
        this.#isUnknown = false
        for (const name of texts([...this.#center.topics.values()].map((topic) => topic.subject))[0]) this.#missed.add(name)
      }
      if (!this.hasRules) {
        this.hasRules = true
        this.#center.putRules()
      }
    } else {
      if (state === 'background') {
        this.#missed.clear()
        this.#isUnknown = this.#isDoubtful = false
      }
      this.#center.withdrawRules()
      this.isOpen = this.hasRules = false
    }
    const inForce = (_, error) => {
      if (error && link !== this.#link) return
      if (change === this.#change) {
        this.isOpen = state === 'foreground'
        if (this.state !== state) {
          this.state = state
          this.#center.announce('statechange', state)
        }
        this.#deliver([])
        this.hasEntered = true
        this.#center.confirmAll()
        this.#tell()
      }
      if (call) link.reply(call, 't', [this.#center.dropped])
    }
    if (state === 'foreground' && this.isOpen) inForce()
    else link.callBus('GetId', [], inForce)
  }

  #deliver(names) {
    for (const name of names) this.#missed.add(name)
    if (!this.isOpen) return
    const missed = [...this.#missed]
    this.#missed.clear()
    for (const name of missed) this.#center.hear(name)
  }
}
