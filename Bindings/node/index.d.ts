// SPDX-License-Identifier: Apache-2.0
import { EventEmitter } from 'node:events'

/** A name, such as `com.example.backup.done`, or a prefix: `com.example.*`, or `*` for everything. */
export type Pattern = string

/** The lifecycle state of a program: see Documentation/lifecycle.md. */
export type State = 'foreground' | 'background' | 'suspended'

/** What can go wrong: `code` says what, `message` is a sentence. */
export class NotifyBusError extends Error {
  readonly code: 'invalidName' | 'noBus' | 'queueFull' | 'refused' | 'timedOut' | 'noAgent' | 'closed'
  /** The name of the D-Bus error, if the bus or the agent has refused something. */
  readonly busErrorName?: string
}

/** Names that are observed: an emitter of `notification`, or an asynchronous iterator for one consumer. */
export class Observation extends EventEmitter implements AsyncIterable<string> {
  private constructor()
  /** False once it is canceled. */
  readonly isActive: boolean
  /** Ends it. Nothing is heard once this has returned, and iterators end. */
  cancel(): void
  on(event: 'notification', listener: (name: string) => void): this
  /**
   * Up to 4,096 notifications are queued individually until they are taken, then one for each name. Leaving the loop
   * cancels the observation.
   */
  [Symbol.asyncIterator](): AsyncIterator<string>
}

/**
 * Posts and observes names on one bus, with one connection, which it opens at its first use.
 *
 * It emits `connected` when everything is registered with a bus, `disconnected` with an error when the connection is
 * lost, and `statechange` with the new lifecycle state. If the bus goes away, it reconnects and registers everything
 * again; what was posted meanwhile is lost. A bus that lives on, but has cut it off, makes each observed name heard once.
 *
 * A center that is connected keeps the program running until it is closed.
 */
export class Center extends EventEmitter {
  /**
   * @param options.bus `session`, `system` or a D-Bus address. Without it the environment says which: `NOTIFYBUS_ADDRESS`,
   * or else the session bus.
   */
  constructor(options?: { bus?: string })
  /** Whether there is a connection, as far as it knows. */
  readonly isConnected: boolean
  readonly state: State
  /** False in a sandbox that keeps the posts of others out. */
  readonly hearsOthers: boolean
  /** How many notifications were not delivered: in the background, or when a queue was full. */
  readonly dropped: number

  /** Posts a name. When the promise is fulfilled, the bus has routed it to everybody who observes it. */
  post(name: string): Promise<void>
  /**
   * Posts a name without waiting for anything. While the bus does not keep up, or is away, 4,096 posts wait
   * individually; of those beyond, equal names are coalesced, and other names are refused when 65,536 wait.
   */
  postSoon(name: string): void
  /** Fulfilled when the bus has routed every earlier post. */
  flush(): Promise<void>
  /** Observes names and prefixes. When the promise is fulfilled, every later post is heard. */
  observe(patterns: Pattern | readonly Pattern[], listener?: (name: string) => void): Promise<Observation>
  /**
   * The next name that is posted.
   * @param options.timeout in milliseconds, which include the time for the bus
   * @param options.onceLive runs once, when every later post is heard
   */
  next(
    patterns: Pattern | readonly Pattern[],
    options?: { timeout?: number; onceLive?: () => unknown }
  ): Promise<string>
  /** Reports the state in which this program wants to be. The agent decides. */
  report(state: 'foreground' | 'background'): Promise<void>
  /** Leaves the bus, once it has routed what was posted. */
  close(): Promise<void>

  on(event: 'connected', listener: () => void): this
  on(event: 'disconnected', listener: (error: NotifyBusError) => void): this
  on(event: 'statechange', listener: (state: State) => void): this
}
