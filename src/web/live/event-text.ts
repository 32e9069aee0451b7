import type { LiveEvent } from '../../domain/notifications/live-events.js'
import { withDecimalPoints } from '../api/decimal-points.js'
import type { DialectContext } from '../api/dialect.js'
import { presentMessage } from '../presenters/conversations.js'
import { presentLiveEventCase } from '../presenters/moderation.js'
import { presentNotification } from '../presenters/notifications.js'
import { presentPost } from '../presenters/posts.js'

/** Why missed events cannot be sent, so that the client has to read the lists again. */
export type Gap = 'unknown' | 'too_old' | 'too_many'

/** An event of the stream. JSON has no line breaks, so each event is one line of data. */
export function eventText(event: LiveEvent, context: DialectContext): string {
  return block(event.id, event.kind, dataOf(event, context))
}

/** Reports a gap before this id; events after it are complete. */
export function resetText(id: number, reason: Gap): string {
  return block(id, 'reset', { reason })
}

/** An id without an event, from which a client can resume. */
export function positionText(id: number): string {
  return `id: ${id}\n\n`
}

export function retryText(milliseconds: number): string {
  return `retry: ${milliseconds}\n\n`
}

/** A comment line: ignored by clients, but proxies see traffic and keep the connection. */
export const HEARTBEAT = ':\n\n'

function dataOf(event: LiveEvent, context: DialectContext): object {
  switch (event.kind) {
    case 'notification':
      return presentNotification(event.notification, context)
    case 'message':
      return { ...presentMessage(event.message, context.addresses), conversation_guid: event.message.conversationGuid }
    case 'post':
      return presentPost(event.post, context.addresses)
    case 'moderation_case':
      return presentLiveEventCase(event.case)
  }
}

function block(id: number, name: string, data: object): string {
  return `id: ${id}\nevent: ${name}\ndata: ${withDecimalPoints(JSON.stringify(data))}\n\n`
}
