// SPDX-License-Identifier: Apache-2.0
// A connection to a bus: finding it, getting in, calls and their answers.

import fs from 'node:fs'
import net from 'node:net'
import process from 'node:process'
import { NotifyBusError } from './errors.js'
import { interfaceOf, path as pathOf } from './names.js'
import { CALL, ERROR, NO_AUTO_START, NO_REPLY, Parser, RETURN, SIGNAL, marshal } from './wire.js'

export const BUS = 'org.freedesktop.DBus'
export const BUS_PATH = '/org/freedesktop/DBus'
// Milliseconds that the bus has to accept a connection, and to answer a call.
const ACCEPT_TIME = 10_000
const ANSWER_TIME = 25_000

const noBus = (message) => new NotifyBusError('noBus', message)

// Ignored, as by every program, where it runs with the rights of another user.
function environment(name) {
  const isTrusted = process.getuid() === process.geteuid() && process.getgid() === process.getegid()
  return isTrusted ? process.env[name] || undefined : undefined
}

/** The D-Bus address of `session`, `system` or an address; undefined is what `NOTIFYBUS_ADDRESS` says, or `session`. */
function resolve(bus) {
  bus = bus ?? environment('NOTIFYBUS_ADDRESS') ?? 'session'
  if (bus === 'system') return environment('DBUS_SYSTEM_BUS_ADDRESS') ?? 'unix:path=/run/dbus/system_bus_socket'
  if (bus !== 'session') return bus
  const address = environment('DBUS_SESSION_BUS_ADDRESS')
  if (address) return address
  const escape = (path) => encodeURIComponent(path).replace(/[!'()*~]/g, (each) => '%' + each.charCodeAt(0).toString(16))
  const folder = environment('XDG_RUNTIME_DIR')
  if (folder && fs.existsSync(`${folder}/bus`)) return `unix:path=${escape(`${folder}/bus`)}`
  const own = `/run/user/${process.geteuid()}/bus`
  const found = fs.statSync(own, { throwIfNoEntry: false })
  if (found?.isSocket() && found.uid === process.geteuid()) return `unix:path=${own}`
  throw noBus('There is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and there is neither $XDG_RUNTIME_DIR/bus ' +
    `nor ${own}.`)
}

/** The sockets that an address names, in the order in which to try them. */
function sockets(address) {
  const found = []
  for (const each of address.split(';')) {
    const match = /^unix:(?:.*,)?(path|abstract)=([^,]+)(?:,.*)?$/.exec(each)
    if (match) found.push((match[1] === 'abstract' ? '\0' : '') + unescape(match[2]))
  }
  if (!found.length) throw noBus(`'${address}' names no Unix socket; only unix:path= and unix:abstract= can be used.`)
  return found
}

function unescape(text) {
  const bytes = text.replace(/%([0-9A-Fa-f]{2})/g, (_, digits) => String.fromCharCode(parseInt(digits, 16)))
  // Text may have characters beyond those of bytes already.
  return /^[\0-\xff]*$/.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : decodeURIComponent(text)
}

const signals = new Map()

/** A post, but for its serial number. */
function signalOf(name) {
  let found = signals.get(name)
  if (!found) {
    if (signals.size >= 1024) signals.clear()
    const fields = { path: pathOf(name), interface: interfaceOf(name), member: 'Posted', signature: 's' }
    signals.set(name, found = marshal(SIGNAL, 0, NO_REPLY, fields, [name]))
  }
  return found
}

/** A connection. All callbacks run in the order in which messages arrive, before the next one is looked at. */
export class Connection {
  name = '' // The unique name.
  busID = '' // What tells one bus from another, and from its successor.
  isWritable = true
  onWritable = () => {}
  #line = Buffer.alloc(0)
  #parser = new Parser()
  #serial = 0
  #calls = new Map()
  #socket
  #handlers
  #accepted

  /** Connects to a bus, which has accepted the connection when the promise is fulfilled. */
  static async open(bus, handlers) {
    let reason
    for (const path of sockets(resolve(bus))) {
      const link = new Connection()
      try {
        await link.#connect(path, handlers)
        return link
      } catch (error) {
        reason = error
      }
    }
    throw reason
  }

  #connect(path, handlers) {
    this.#handlers = handlers
    return new Promise((fulfill, reject) => {
      const timer = setTimeout(() => this.lose(`The bus did not accept the connection within ${ACCEPT_TIME / 1000} s.`), ACCEPT_TIME)
      this.#accepted = (error) => {
        clearTimeout(timer)
        if (error) reject(error)
        else fulfill()
      }
      this.#socket = net.connect({ path })
      this.#socket.on('connect', () => this.#socket?.write('\0AUTH EXTERNAL\r\nDATA\r\n'))
      this.#socket.on('data', (data) => this.#receive(data))
      this.#socket.on('error', (error) => this.lose(`The bus can't be reached: ${error.message}`))
      this.#socket.on('close', () => this.lose('The bus has closed the connection.'))
      this.#socket.on('drain', () => {
        this.isWritable = true
        this.onWritable()
      })
    })
  }

  #receive(data) {
    try {
      while (this.#line) {
        this.#line = Buffer.concat([this.#line, data])
        data = Buffer.alloc(0)
        const end = this.#line.indexOf('\r\n')
        if (end < 0) {
          if (this.#line.length > 16_384) throw new RangeError('The bus does not speak D-Bus.')
          return
        }
        const line = this.#line.toString('latin1', 0, end)
        this.#line = this.#line.subarray(end + 2)
        if (line.startsWith('OK ')) {
          this.busID = line.slice(3).trim()
          data = this.#line
          this.#line = null
          this.#write(Buffer.from('BEGIN\r\n'))
          this.callBus('Hello', [], (answer, error) => this.#welcome(answer, error))
        } else if (line.trim() !== 'DATA') {
          throw new RangeError('The bus closed the connection instead of accepting it; it may belong to another user.')
        }
      }
      for (const message of this.#parser.feed(data)) {
        this.#take(message)
        if (!this.#socket) return
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      this.lose(error.message)
    }
  }

  #welcome(answer, error) {
    if (answer) [this.name] = answer.body()
    this.#accepted(answer ? undefined : noBus(`The bus refuses this program: ${error.message}`))
  }

  /** Ends the connection, and says why. */
  lose(reason) {
    const socket = this.#socket
    if (!socket) return
    this.#socket = null
    socket.destroy()
    const error = noBus(reason)
    this.#accepted(error)
    const calls = [...this.#calls.values()]
    this.#calls.clear()
    for (const { timer, then } of calls) {
      clearTimeout(timer)
      then(undefined, error)
    }
    if (this.name) this.#handlers.lost(error)
  }

  /** Leaves the bus, after what was written. */
  close() {
    const socket = this.#socket
    this.#socket = null
    for (const { timer } of this.#calls.values()) clearTimeout(timer)
    this.#calls.clear()
    socket?.end(() => socket.destroy())
  }

  #write(data) {
    if (this.#socket && !this.#socket.write(data)) this.isWritable = false
  }

  #next() { return this.#serial = this.#serial % 0xffffffff + 1 }

  #send(kind, flags, fields, values) {
    const serial = this.#next()
    this.#write(marshal(kind, serial, flags, fields, values))
    return serial
  }

  /** Sends the signals for names. */
  post(names) {
    this.#write(Buffer.concat(names.map((name) => {
      const data = Buffer.from(signalOf(name))
      data.writeUInt32LE(this.#next(), 8)
      return data
    })))
  }

  /** Calls a method. `then` gets the answer, or an error, once; without it none is asked for. */
  call(destination, path, member, signature, values, { interface: name = destination, then, flags = 0, time = ANSWER_TIME } = {}) {
    if (!this.#socket) return then?.(undefined, noBus('There is no connection to the bus.'))
    const fields = { destination, path, interface: name, member, signature: signature || undefined }
    const serial = this.#send(CALL, flags | (then ? 0 : NO_REPLY), fields, values)
    if (!then) return
    const timer = setTimeout(() => {
      this.#calls.delete(serial)
      then(undefined, new NotifyBusError('refused', `There is no answer from ${destination}.`, `${BUS}.Error.NoReply`))
    }, time)
    this.#calls.set(serial, { destination, then, timer })
  }

  /** Calls the bus itself, all of whose methods that are used here take one string, or nothing. */
  callBus(member, values = [], then = undefined) {
    this.call(BUS, BUS_PATH, member, 's'.repeat(values.length), values, { then, flags: NO_AUTO_START })
  }

  /** The same as a promise, for callers that can wait. */
  ask(destination, path, member, signature, values, options) {
    return new Promise((fulfill, reject) => {
      const then = (answer, error) => answer ? fulfill(answer.body()) : reject(error)
      this.call(destination, path, member, signature, values, { ...options, then })
    })
  }

  /** Answers a call, if that is wanted. */
  reply(call, signature, values, error) {
    if (call.flags & NO_REPLY) return
    this.#send(error ? ERROR : RETURN, NO_REPLY, { destination: call.sender, reply: call.serial, error, signature }, values)
  }

  #take(message) {
    if (message.kind === CALL || message.kind === SIGNAL) return this.#handlers.message(message)
    const pending = this.#calls.get(message.reply)
    // The bus lets an answer come only from who was called; a well-known name stands for its owner.
    const isFromCalled = pending && (pending.destination === message.sender || pending.destination !== BUS && !pending.destination.startsWith(':'))
    if (!isFromCalled) return
    this.#calls.delete(message.reply)
    clearTimeout(pending.timer)
    if (message.kind === RETURN) return pending.then(message)
    const text = message.signature?.startsWith('s') ? message.body()[0] : ''
    pending.then(undefined, new NotifyBusError('refused', text, message.error))
  }
}
