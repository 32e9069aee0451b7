import type { ServerResponse } from 'node:http'
import type { Viewer } from '../../domain/accounts/viewers.js'
import type { EventRecipient } from '../../domain/notifications/live-events.js'
import type { LiveLimits } from '../../limits.js'
import { HEARTBEAT, placeText } from './event-text.js'

/** A client that keeps a stream open. */
export interface Listener extends EventRecipient {
  /** As the token was when it was last looked at. */
  viewer: Viewer
  /** The last announcement it was told of, or did not need to be; undefined: it has asked for nothing that was before it came. */
  position: number | undefined
  /** Announcements that were looked through for it since it came back. */
  missed: number
  readonly closed: boolean
  /** Returns whether the client takes what it is sent; false: see `drained`. */
  write(text: string): boolean
  /** Resolves when the client has taken everything, or is gone: who takes too long is cut off, and may come back. */
  drained(): Promise<void>
  beat(): void
  end(): void
}

export function openListener(response: ServerResponse, recipient: EventRecipient, limits: LiveLimits): Listener {
  return {
    ...recipient,
    position: undefined,
    missed: 0,
    get closed() {
      return response.destroyed || response.writableEnded
    },
    write(text) {
      if (!this.closed && text !== '') response.write(text)
      return response.writableLength <= limits.unsentBytes
    },
    async drained() {
      if (this.closed || !response.writableNeedDrain) return
      const tooSlow = setTimeout(() => response.destroy(), limits.drainMs)
      await new Promise<void>((resolve) => {
        const done = () => {
          response.off('drain', done).off('close', done)
          resolve()
        }
        response.on('drain', done).on('close', done)
      })
      clearTimeout(tooSlow)
    },
    beat() {
      this.write(this.position === undefined ? HEARTBEAT : `${HEARTBEAT}${placeText(this.position)}`)
    },
    end() {
      if (!this.closed) response.end()
    },
  }
}
