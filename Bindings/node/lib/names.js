// SPDX-License-Identifier: Apache-2.0
// Names, and how they are written on a bus: see the article "The wire format".

import { NotifyBusError } from './errors.js'

const RESERVED = ['com.apple.system.', 'org.notifybus.system.']
const PATH = '/org/notifybus'

/** Throws unless there can be such a name. */
export function check(name) {
  const invalid = (message) => { throw new NotifyBusError('invalidName', message) }
  if (typeof name !== 'string') invalid('A name must be a string.')
  if (/\p{Surrogate}/u.test(name)) invalid('A name must be valid UTF-8, which has no surrogates.')
  const length = Buffer.byteLength(name)
  if (length < 1 || length > 511) invalid(`A name must have 1 to 511 bytes; this one has ${length}.`)
  if (name.includes('\0')) invalid("A name can't contain NUL.")
}

export const isValid = (name) => { try { check(name); return true } catch { return false } }
export const staysInProcess = (name) => name.startsWith('self.')
export const isOwned = (name) => name.startsWith('user.uid.')
export const path = (name) => RESERVED.some((start) => name.startsWith(start)) ? `${PATH}/reserved` : PATH

/** Whether a user's posts of a name count; undefined is a user whom the bus does not know. */
export function mayPost(name, user) {
  if (!isOwned(name) || user === 0) return true
  const owner = name.split('.')[2]
  return user !== undefined && /^(0|[1-9][0-9]{0,9})$/.test(owner) && Number(owner) === user
}

const interfaces = new Map()

/** The interface of the posts of a name: escaped, or hashed if that would be too long for D-Bus. */
export function interfaceOf(name) {
  let found = interfaces.get(name)
  if (found === undefined) {
    if (interfaces.size >= 1024) interfaces.clear()
    interfaces.set(name, found = makeInterface(name))
  }
  return found
}

function makeInterface(name) {
  // One character for each byte.
  const bytes = Buffer.from(name).toString('latin1')
  const escape = (byte) => '_' + byte.charCodeAt(0).toString(16).padStart(2, '0')
  const parts = bytes.split('.').map((part) => part.replace(/^[0-9]|[^A-Za-z0-9]/g, escape) || '_')
  const escaped = ['org.notifybus.n', ...parts].join('.')
  if (escaped.length <= 255) return escaped
  let hash = 14695981039346656037n
  for (const byte of Buffer.from(name)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 1099511628211n)
  return 'org.notifybus.h.x' + hash.toString(16).padStart(16, '0')
}

/** What is observed: a name, or everything that begins with a prefix. */
export class Subject {
  /** `*` and what ends in `.*` are prefixes, anything else is a name. */
  constructor(pattern) {
    this.pattern = pattern
    this.isPrefix = pattern === '*' || typeof pattern === 'string' && pattern.endsWith('.*')
    this.text = this.isPrefix ? pattern.slice(0, -1) : pattern
    if (this.text !== '' || !this.isPrefix) check(this.text)
    this.isSent = !staysInProcess(this.text)
  }

  includes(name) { return this.isPrefix ? name.startsWith(this.text) : name === this.text }

  /** The match rules for it; none for what needs no bus. */
  get rules() {
    if (!this.isSent) return []
    const start = (path) => `type='signal',member='Posted',path='${path}'`
    if (!this.isPrefix) return [`${start(path(this.text))},interface='${interfaceOf(this.text)}'`]
    // The bus refuses a namespace that can't begin a bus name.
    const isNamespace = this.text.length <= 256 && /^([A-Za-z_-][A-Za-z0-9_-]*\.)+$/.test(this.text)
    const end = isNamespace ? `,arg0namespace='${this.text.slice(0, -1)}'` : ''
    // A short prefix, like that of `com.*`, may begin reserved names and others.
    const paths = [path(this.text), ...RESERVED.filter((each) => each.startsWith(this.text)).map(path)]
    return [...new Set(paths)].map((each) => start(each) + end)
  }
}
