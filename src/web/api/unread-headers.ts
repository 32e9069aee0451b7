import type { FastifyReply } from 'fastify'
import type { ShownUnreadCounts } from '../../domain/notifications/unread-counts.js'

/** Sends unread counts as headers, because the body is a list or a single object. */
export function sendUnreadCounts(reply: FastifyReply, counts: ShownUnreadCounts): void {
  const { notifications, conversations, messages } = counts
  const headers = {
    'unread-notifications': notifications,
    'unread-conversations': conversations,
    'unread-messages': messages,
  }
  for (const [name, count] of Object.entries(headers)) if (count !== undefined) reply.header(name, count)
}
