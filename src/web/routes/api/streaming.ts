import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Viewer } from '../../../domain/accounts/access.js'
import { SCOPE_OF_KIND } from '../../../domain/notifications/live-events.js'
import { HTTP_LIMITS } from '../../../limits.js'
import type { AnnouncementKind } from '../../../persistence/notifications/announcements.js'
import { insufficientScope } from '../../api/authentication.js'
import type { LiveChannel, Place } from '../../live/channel.js'
import { RequestFault } from '../../server/request-faults.js'

const DESCRIPTION = `A stream of server-sent events that stays open: an extension of this pod. Each event has an \`id\`, one of these names, and an
object of JSON as its \`data\`:

- \`notification\`: a notification that is new or to which something was added, as \`GET /notifications/{notification_id}\` shows it (scope \`notifications\`);
- \`message\`: a message in one of your conversations, as its list shows it, with \`conversation_guid\` (scope \`conversations\`);
- \`post\`: a new post of your main stream, as the stream shows it (private ones with scope \`private:read\`);
- \`reset\`: there is a gap, because what you ask for is too long ago, or because it is too much (\`reason\`). Read the lists; what comes
  after this event has no gap.

After an interruption, ask again with the last \`id\` you have got, as \`EventSource\` does by itself with the header \`Last-Event-ID\`:
you get everything since then, each event once. What came at nearly the same time may come in any order. A pod keeps events for two days. An \`id\` may also come without an event.
A stream ends when its token is revoked or expires, and when the pod restarts.`

const querystring = Type.Object({
  types: Type.Optional(
    Type.String({
      pattern: '^(notification|message|post)(,(notification|message|post))*$',
      description: 'Only these, with commas between them. Not given: everything the token allows.',
    }),
  ),
  last_event_id: Type.Optional(
    Type.String({ description: 'The same as the header `Last-Event-ID`, for clients that cannot send it.' }),
  ),
})

/** What is new, at the moment in which it is. */
export const streamingRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/streaming',
    {
      exposeHeadRoute: false, // what follows the head never ends
      schema: {
        operationId: 'listen',
        tags: ['Live'],
        summary: 'Hear of what is new',
        description: DESCRIPTION,
        querystring,
        response: {
          200: {
            description: 'The stream.',
            content: { 'text/event-stream': { schema: Type.String() } },
          },
        },
      },
      config: { scopes: ['public:read'], lasting: true },
    },
    (request, reply) => {
      const { viewer } = request
      const kinds = kindsOf(viewer, request.query.types, app.pod.config.host)
      checkRoom(app.live, viewer)
      const response = openStream(reply)
      app.live.join(response, { viewer, kinds }, placeOf(request, request.query.last_event_id))
    },
  )
}

/** What is asked for has to be allowed; who asks for nothing gets what is. */
function kindsOf({ scopes }: Viewer, types: string | undefined, realm: string): ReadonlySet<AnnouncementKind> {
  const all = Object.keys(SCOPE_OF_KIND) as AnnouncementKind[]
  const wanted = all.filter((kind) => types === undefined || types.split(',').includes(kind))
  const missing = wanted.map((kind) => SCOPE_OF_KIND[kind]).filter((scope) => !scopes.has(scope))
  if (types !== undefined && missing.length > 0) throw insufficientScope(realm, missing)
  return new Set(wanted)
}

function checkRoom(live: LiveChannel, viewer: Viewer): void {
  const refusal = live.refusalOf(viewer)
  if (refusal === undefined) return
  const headers = { 'retry-after': String(HTTP_LIMITS.retryAfterSeconds) }
  if (refusal === 'too_many') {
    throw new RequestFault(429, 'You have too many streams open. Please close some.', { headers })
  }
  throw new RequestFault(503, 'The pod has no more room for streams. Please try again soon.', { headers })
}

/** The head says that nobody in between may wait for more before they pass it on. */
function openStream(reply: FastifyReply): FastifyReply['raw'] {
  reply
    .header('content-type', 'text/event-stream; charset=utf-8')
    .header('x-accel-buffering', 'no')
    .hijack()
    .raw.writeHead(200, reply.getHeaders() as Record<string, string>)
  return reply.raw
}

/** The header is what a client sends that was interrupted, also where its first address named a place. */
function placeOf(request: FastifyRequest, parameter: string | undefined): Place {
  const id = String(request.headers['last-event-id'] ?? parameter ?? '')
  if (id === '') return 'now'
  return /^\d{1,15}$/.test(id) ? Number(id) : 'unreadable'
}
