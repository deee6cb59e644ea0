// SPDX-License-Identifier: Apache-2.0
// Messages of D-Bus as bytes.

export const CALL = 1, RETURN = 2, ERROR = 3, SIGNAL = 4
export const NO_REPLY = 1, NO_AUTO_START = 2

const FIELDS = [, 'path', 'interface', 'member', 'error', 'reply', 'destination', 'sender', 'signature']
const TYPES = { path: 'o', reply: 'u', signature: 'g' }
const ALIGNMENT = { y: 1, b: 4, n: 2, q: 2, i: 4, u: 4, h: 4, x: 8, t: 8, d: 8, s: 4, o: 4, a: 4, '(': 8, '{': 8, g: 1, v: 1 }
const WRITERS = { y: 'writeUInt8', b: 'writeUInt32LE', u: 'writeUInt32LE', t: 'writeBigUInt64LE' }
const READERS = {
  y: 'readUInt8', b: 'readUInt32', n: 'readInt16', q: 'readUInt16', i: 'readInt32', u: 'readUInt32', h: 'readUInt32',
  x: 'readBigInt64', t: 'readBigUInt64', d: 'readDouble'
}

/** The complete types of a signature. */
function types(signature) {
  const found = []
  for (let at = 0; at < signature.length;) {
    const start = at
    let depth = 0
    do {
      if ('({'.includes(signature[at])) depth++
      if (')}'.includes(signature[at])) depth--
      at++
    } while (at < signature.length && (depth > 0 || signature[at - 1] === 'a'))
    found.push(signature.slice(start, at))
  }
  return found
}

class Writer {
  data = Buffer.alloc(256)
  length = 0

  align(size) { this.grow((size - this.length % size) % size) }

  grow(count) {
    if (this.length + count > this.data.length) {
      this.data = Buffer.concat([this.data], 2 * (this.length + count))
    }
    this.length += count
    return this.length - count
  }

  write(signature, value) {
    const kind = signature[0]
    this.align(ALIGNMENT[kind])
    if (kind in WRITERS) {
      const at = this.grow(ALIGNMENT[kind])
      this.data[WRITERS[kind]](kind === 't' ? BigInt(value) : Number(value), at)
    } else if ('sog'.includes(kind)) {
      const bytes = Buffer.from(value)
      this.write(kind === 'g' ? 'y' : 'u', bytes.length)
      const at = this.grow(bytes.length + 1) // Before `data`, which may be another one then.
      bytes.copy(this.data, at)
    } else if (kind === 'v') {
      this.write('g', value[0])
      this.write(value[0], value[1])
    } else if (kind === 'a') {
      const place = this.grow(4)
      this.align(ALIGNMENT[signature[1]])
      const start = this.length
      for (const item of signature[1] === '{' ? Object.entries(value) : value) this.write(signature.slice(1), item)
      this.data.writeUInt32LE(this.length - start, place)
    } else {
      types(signature.slice(1, -1)).forEach((each, index) => this.write(each, value[index]))
    }
  }
}

class Reader {
  constructor(data, isLittle, at = 0) {
    this.data = data
    this.end = isLittle ? 'LE' : 'BE'
    this.at = at
  }

  read(signature) {
    const kind = signature[0]
    const size = ALIGNMENT[kind]
    this.at += (size - this.at % size) % size
    if (kind in READERS) {
      const value = this.data[READERS[kind] + (kind === 'y' ? '' : this.end)](this.at)
      this.at += size
      return kind === 'b' ? value !== 0 : value
    }
    if ('sog'.includes(kind)) {
      const length = this.read(kind === 'g' ? 'y' : 'u')
      const start = this.at
      this.at += length + 1
      if (this.at > this.data.length) throw new RangeError('A string is longer than its message.')
      return this.data.toString('utf8', start, start + length)
    }
    if (kind === 'v') return this.read(this.read('g'))
    if (kind === 'a') {
      const length = this.read('u')
      const inner = ALIGNMENT[signature[1]]
      this.at += (inner - this.at % inner) % inner
      const end = this.at + length
      const items = []
      while (this.at < end) items.push(this.read(signature.slice(1)))
      return items
    }
    return types(signature.slice(1, -1)).map((each) => this.read(each))
  }
}

/** A message as bytes. The arguments are those of `fields.signature`. */
export function marshal(kind, serial, flags, fields, values = []) {
  const body = new Writer()
  types(fields.signature ?? '').forEach((each, index) => body.write(each, values[index]))
  const message = new Writer()
  for (const byte of [0x6c, kind, flags, 1]) message.write('y', byte)
  message.write('u', body.length)
  message.write('u', serial)
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  message.write('a(yv)', entries.map(([field, value]) => [FIELDS.indexOf(field), [TYPES[field] ?? 's', value]]))
  message.align(8)
  return Buffer.concat([message.data.subarray(0, message.length), body.data.subarray(0, body.length)])
}

/** Cuts what a bus sends into messages. */
export class Parser {
  #rest = Buffer.alloc(0)
  // The posts of a name by one sender have the same header but for their serial number.
  #known = new Map();

  /** The messages that are complete now; throws a RangeError if there can be none such. */
  * feed(chunk) {
    const data = this.#rest.length ? Buffer.concat([this.#rest, chunk]) : chunk
    let start = 0
    try {
      while (data.length - start >= 16) {
        const isLittle = data[start] === 0x6c
        if (!isLittle && data[start] !== 0x42 || data[start + 3] !== 1) throw new RangeError('A message has an unknown form.')
        const [length, serial, header] = [4, 8, 12].map((at) => isLittle ? data.readUInt32LE(start + at) : data.readUInt32BE(start + at))
        if (header > 2 ** 26 || length > 2 ** 27) throw new RangeError('A message is too long.')
        const middle = start + 16 + header + (8 - header % 8) % 8
        if (data.length < middle + length) break
        const fields = this.#fields(data.subarray(start, start + 16 + header), isLittle)
        const body = data.subarray(middle, middle + length)
        const message = { kind: data[start + 1], flags: data[start + 2], serial, ...fields, body: () => readBody(body, isLittle, fields.signature ?? '') }
        start = middle + length
        yield message
      }
    } finally {
      this.#rest = data.subarray(start)
    }
  }

  #fields(header, isLittle) {
    const key = header[0] + header.toString('latin1', 12)
    let fields = this.#known.get(key)
    if (!fields) {
      if (this.#known.size >= 1000) this.#known.clear()
      fields = {}
      for (const [code, value] of new Reader(header, isLittle, 12).read('a(yv)')) if (FIELDS[code]) fields[FIELDS[code]] = value
      // A stranger can send headers of megabytes. That of a post has some 700 bytes at most.
      if (key.length <= 1024) this.#known.set(key, fields)
    }
    return fields
  }
}

function readBody(data, isLittle, signature) {
  const reader = new Reader(data, isLittle)
  return types(signature).map((each) => reader.read(each))
}
