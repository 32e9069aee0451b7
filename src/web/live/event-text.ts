import type { LiveEvent } from '../../domain/notifications/live-events.js'
import { withDecimalPoints } from '../api/decimal-points.js'
import type { DialectContext } from '../api/dialect.js'
import { presentMessage } from '../presenters/conversations.js'
import { presentNotification } from '../presenters/notifications.js'
import { presentPost } from '../presenters/posts.js'

/** Why a client has to read the lists instead of what it missed. */
export type Gap = 'unknown' | 'too_old' | 'too_many'

/** An event as it is written to a stream: JSON has no line breaks, so each is one line of data. */
export function eventText(event: LiveEvent, context: DialectContext): string {
  return block(event.id, event.kind, dataOf(event, context))
}

/** Tells a client that there is a gap; from this id on there is none. */
export function resetText(id: number, reason: Gap): string {
  return block(id, 'reset', { reason })
}

/** Nothing but a place to come back to. */
export function placeText(id: number): string {
  return `id: ${id}\n\n`
}

export function retryText(milliseconds: number): string {
  return `retry: ${milliseconds}\n\n`
}

/** A comment, which clients pass over and proxies do not. */
export const HEARTBEAT = ':\n\n'

function dataOf(event: LiveEvent, context: DialectContext): object {
  switch (event.kind) {
    case 'notification':
      return presentNotification(event.notification, context)
    case 'message':
      return { ...presentMessage(event.message, context.url), conversation_guid: event.message.conversationGuid }
    case 'post':
      return presentPost(event.post, context.url)
  }
}

function block(id: number, name: string, data: object): string {
  return `id: ${id}\nevent: ${name}\ndata: ${withDecimalPoints(JSON.stringify(data))}\n\n`
}
