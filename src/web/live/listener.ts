import type { ServerResponse } from 'node:http'
import type { Viewer } from '../../domain/accounts/viewers.js'
import type { EventRecipient } from '../../domain/notifications/live-events.js'
import { HEARTBEAT, positionText } from './event-text.js'
import type { LiveLimits } from './limits.js'

/** A client that keeps an event stream open. */
export interface Listener extends EventRecipient {
  /** The viewer at the last check of the token. */
  viewer: Viewer
  /** Id of the last live event that was sent, or that does not concern this client. Undefined: the stream starts with new ones. */
  position: number | undefined
  /** Live events read for this client alone since it connected or was last up to date. */
  missed: number
  readonly isClosed: boolean
  /** Returns whether the client accepts more; if not, await `drained` before the next write. */
  write(text: string): boolean
  /**
   * Resolves when the client has received everything or has disconnected. A client that takes too long is disconnected; it may reconnect.
   */
  drained(): Promise<void>
  sendHeartbeat(): void
  end(): void
}

export function openListener(response: ServerResponse, recipient: EventRecipient, limits: LiveLimits): Listener {
  return {
    ...recipient,
    position: undefined,
    missed: 0,
    get isClosed() {
      return response.destroyed || response.writableEnded
    },
    write(text) {
      if (!this.isClosed && text !== '') response.write(text)
      return response.writableLength <= limits.unsentBytes
    },
    async drained() {
      if (this.isClosed || !response.writableNeedDrain) return
      const disconnect = setTimeout(() => response.destroy(), limits.drainMs)
      await new Promise<void>((resolve) => {
        const done = () => {
          response.off('drain', done).off('close', done)
          resolve()
        }
        response.on('drain', done).on('close', done)
      })
      clearTimeout(disconnect)
    },
    sendHeartbeat() {
      this.write(this.position === undefined ? HEARTBEAT : `${HEARTBEAT}${positionText(this.position)}`)
    },
    end() {
      if (!this.isClosed) response.end()
    },
  }
}
