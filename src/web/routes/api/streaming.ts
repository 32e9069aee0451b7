import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Viewer } from '../../../domain/accounts/viewers.js'
import { SCOPE_OF_LIVE_EVENT_KIND } from '../../../domain/notifications/live-events.js'
import type { LiveEventKind } from '../../../persistence/notifications/live-event-sources.js'
import { requireScopes } from '../../api/authentication.js'
import { countRateLimited } from '../../limits/rejection-metrics.js'
import type { LiveChannel, StartPosition } from '../../live/channel.js'
import { StreamEventData } from '../../schemas/live.js'
import { refTo } from '../../schemas/references.js'
import { HTTP_LIMITS } from '../../server/limits.js'
import { RequestFault } from '../../server/request-faults.js'

const DESCRIPTION = `A stream of server-sent events that stays open: an extension of this pod. Each event has an \`id\`, one of the names below, and a
JSON object as its \`data\`; the schema \`StreamEvents\` has the type of each.

- \`notification\`: a new notification, or one that has changed, as \`GET /notifications/{notification_id}\` returns it (scope \`notifications\`);
- \`message\`: a message in one of your conversations, with its \`conversation_guid\` (scope \`conversations\`);
- \`post\`: a new post of your main stream (private posts with scope \`private:read\`);
- \`moderation_case\`: a case that is new or has changed, only with \`kinds=moderation_case\` (scope \`moderation\`, for moderators and admins);
- \`reset\`: events are missing, for the \`reason\` in its data. Read the lists; after this event nothing is missing.

To resume after an interruption, send the last \`id\` that you received, as \`EventSource\` does by itself with the header \`Last-Event-ID\`:
you get every event since then once. Events of nearly the same time may come in any order. The pod keeps events for two days.
An \`id\` may come without an event. The stream ends when its token is revoked or expires, and when the pod restarts.`

const querystring = Type.Object({
  types: Type.Optional(
    Type.String({
      pattern: '^(notification|message|post)(,(notification|message|post))*$',
      description: 'The events to send, separated by commas. Default: all that the token allows.',
    }),
  ),
  kinds: Type.Optional(
    Type.String({
      pattern: '^(notification|message|post|moderation_case)(,(notification|message|post|moderation_case))*$',
      description: 'As `types`, which it replaces, and with the events for moderators: `moderation_case`.',
    }),
  ),
  last_event_id: Type.Optional(
    Type.String({ description: 'The same as the header `Last-Event-ID`, for clients that cannot send it.' }),
  ),
})

/** Server-sent events: notifications, messages and posts as they arrive. */
export const streamingRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/streaming',
    {
      exposeHeadRoute: false, // the body never ends
      schema: {
        operationId: 'listen',
        tags: ['Live'],
        summary: 'Listen to live events',
        description: DESCRIPTION,
        querystring,
        response: {
          200: {
            description: 'The stream of events. The schema is that of the `data` of one event.',
            content: { 'text/event-stream': { schema: refTo(StreamEventData) } },
          },
        },
      },
      config: { scopes: ['public:read'], lasting: true },
    },
    (request, reply) => {
      const { viewer } = request
      const kinds = kindsOf(request, request.query.kinds ?? request.query.types)
      checkCapacity(app.live, viewer)
      const response = openStream(reply)
      app.live.join(response, { viewer, kinds }, startPositionOf(request, request.query.last_event_id))
    },
  )
}

/** The requested kinds of events, each of which needs its scope. Without a request: every kind that the token allows. */
function kindsOf(request: FastifyRequest, requested: string | undefined): ReadonlySet<LiveEventKind> {
  const all = Object.keys(SCOPE_OF_LIVE_EVENT_KIND) as LiveEventKind[]
  if (requested === undefined) return new Set(all.filter((kind) => kind !== 'moderation_case'))
  const wantedKinds = all.filter((kind) => requested.split(',').includes(kind))
  const scopes = wantedKinds.map((kind) => SCOPE_OF_LIVE_EVENT_KIND[kind])
  const missing = scopes.filter((scope) => !request.viewer.scopes.has(scope))
  requireScopes(request, ...(missing.length > 0 ? missing : scopes))
  return new Set(wantedKinds)
}

function checkCapacity(live: LiveChannel, viewer: Viewer): void {
  const refusal = live.refusalOf(viewer)
  if (refusal === undefined) return
  const headers = { 'retry-after': String(HTTP_LIMITS.retryAfterSeconds) }
  if (refusal === 'too_many') {
    const text = 'You have too many streams open. Please close some.'
    countRateLimited('streams')
    throw new RequestFault(429, text, { headers, fields: { error: 'slow_down', error_description: text } })
  }
  throw new RequestFault(503, 'The pod serves its maximum number of streams. Please try again soon.', { headers })
}

/** Writes the head of the response. `x-accel-buffering` keeps proxies from buffering events. */
function openStream(reply: FastifyReply): FastifyReply['raw'] {
  reply
    .header('content-type', 'text/event-stream; charset=utf-8')
    .header('x-accel-buffering', 'no')
    .hijack()
    .raw.writeHead(200, reply.getHeaders() as Record<string, string>)
  return reply.raw
}

/** The header takes precedence: a browser that reconnects sends it together with the parameter of its first request. */
function startPositionOf(request: FastifyRequest, parameter: string | undefined): StartPosition {
  const id = String(request.headers['last-event-id'] ?? parameter ?? '')
  if (id === '') return 'now'
  return /^\d{1,15}$/.test(id) ? Number(id) : 'unreadable'
}
