import swagger, { type SwaggerTransform, type SwaggerTransformObject } from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { type FastifyInstance, fastify } from 'fastify'
import { ALWAYS_GRANTED, SCOPES } from '../../domain/accounts/scopes.js'
import { isRead } from '../limits/write-limit.js'
import { apiRoutes } from '../routes/api/api-routes.js'
import { Comment, NewComment } from '../schemas/comments.js'
import { Aspect, ErrorBody, OtherPerson, OwnProfile, PersonSummary } from '../schemas/common.js'
import { Conversation, Message, StartedConversation } from '../schemas/conversations.js'
import { Notification } from '../schemas/notifications.js'
import { Photo, Picture, Poll, Post, Root } from '../schemas/posts.js'
import { Like, Reshare } from '../schemas/reactions.js'

const VERSION = '1.0.0'

const INTRODUCTION = `The API of this pod for client apps: everything a person can do here, as JSON over HTTP.

**Tokens.** Each call carries an access token, as \`Authorization: Bearer …\`. The operator of a pod can make one for a first
try with \`pod token alice --scopes "profile public:read"\`. A call names the scopes it needs; \`${ALWAYS_GRANTED}\` comes with
every token. No token, or one that does not count, is a 401; a missing scope is a 403.

**Bodies** are JSON objects; forms with keys in brackets (\`tags[]=a\`) are read as well. Fields nobody knows are passed over.

**Errors** have a body with \`code\` (the HTTP status) and \`message\` (for people; the wording may change). After a 503 or a 429,
\`Retry-After\` says when to try again. Every answer has an \`X-Request-Id\`: tell it to the operator when something is wrong.

**Times** are UTC with three decimals, like \`2025-03-01T08:15:30.250Z\`. **Addresses** of pictures and pages are absolute.
Repeated slashes and one at the end of a path do not matter.

**Lists** come in pages. The \`Link\` header of an answer leads to the next one (\`rel="next"\`, only if there is more) and to where
newer items appear (\`rel="previous"\`): use these addresses as they are.

**Doing it once.** Each \`POST\` may carry an \`Idempotency-Key\` of your own, 1 to 255 visible characters of ASCII: an extension of
this pod. When an answer gets lost, send the same request with the same key again, within a day: it is not done twice, and you
get the answer of the first time, with \`Idempotency-Replayed: true\`. While the first one is under way the answer is a 409 with
\`Retry-After\`; a key that was used for another request is a 422. A key is good for all tokens of your authorization. Answers
that may be other ones later (429 and 5xx) are not kept. Where the pod itself breaks down in the middle of a request, the same key
is answered with 409 for four minutes; then it does the request, or, where that was done already, is answered with 409
without \`Retry-After\`: look what has become of it. Only an upload may be done twice then.

**Live.** \`GET /api/v1/streaming\` tells of what is new at the moment in which it is: no need to ask every minute.

**Promise.** Fields are added, never taken away or given another meaning.`

/** The page loads only what the pod itself serves. */
const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** What several routes answer or take: told once, by name. */
const NAMED_SCHEMAS = [
  ...[ErrorBody, PersonSummary, OwnProfile, OtherPerson, Picture, Photo, Poll, Root, Post, Comment, NewComment],
  ...[Conversation, StartedConversation, Message, Notification, Like, Reshare, Aspect],
]

/** Describes what is registered after it: must come before the routes. */
async function addApiDescription(app: FastifyInstance): Promise<void> {
  for (const schema of NAMED_SCHEMAS) app.addSchema(schema)
  await app.register(swagger, {
    hideUntagged: true,
    transform: describeAccess,
    transformObject: tellAliases,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json['$id'] ?? `schema-${i}`) },
    openapi: {
      openapi: '3.1.1',
      info: {
        title: 'diaspora* client API',
        version: VERSION,
        description: INTRODUCTION,
        license: { name: 'AGPL-3.0-or-later', identifier: 'AGPL-3.0-or-later' },
      },
      servers: [{ url: '/', description: 'This pod' }],
      tags: [
        { name: 'Own profile', description: 'What the person the token belongs to says about themselves.' },
        { name: 'People', description: 'Others, wherever they live: who they are, and what they have shown.' },
        { name: 'Comments', description: 'What people say under a post.' },
        { name: 'Reports', description: 'What those who look after this pod should see.' },
        { name: 'Post interactions', description: 'What you want to hear and see of a post, and votes in its poll.' },
        { name: 'Conversations', description: 'Private ones, each with everything that was said in it.' },
        { name: 'Notifications', description: 'What others did that concerns you.' },
        { name: 'Aspects', description: 'The groups in which you keep those you share with, and who is in them.' },
        { name: 'Posts', description: 'What people write, for everybody or for some.' },
        { name: 'Photos', description: 'Your own, and single ones of others.' },
        { name: 'Likes', description: 'What people like: a post, or a comment under it.' },
        { name: 'Reshares', description: 'What people show to others of what somebody else has written.' },
        { name: 'Tags', description: 'What you follow, whoever writes about it.' },
        { name: 'Streams', description: 'What the people and tags you follow have, in several views.' },
        { name: 'Search', description: 'For people, posts and tags.' },
        { name: 'Live', description: 'What is new, while it happens.' },
      ],
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description: `An access token. Scopes: ${SCOPES.map((scope) => `\`${scope}\``).join(', ')}.`,
          },
        },
      },
    },
  })
}

/** The page for people at `/api/docs`, and the document at `/api/docs/json`. */
export async function addApiDocs(app: FastifyInstance): Promise<void> {
  await addApiDescription(app)
  await app.register(async (docs) => {
    docs.addHook('onRoute', (route) => {
      route.config = { ...route.config, public: true, quiet: true }
    })
    await docs.register(swaggerUi, {
      routePrefix: '/api/docs',
      staticCSP: DOCS_POLICY,
      theme: { title: 'API for client apps' },
      // Without the bar on top, which has the name of a library and a field to load other documents.
      uiConfig: { layout: 'BaseLayout', docExpansion: 'list', deepLinking: true, validatorUrl: 'none' },
    })
  })
}

/** The document without a pod: nothing is asked of the routes but what they are. */
export async function describeApi(): Promise<object> {
  const app = fastify()
  await addApiDescription(app)
  await app.register(apiRoutes, { prefix: '/api/v1' })
  await app.ready()
  return app.swagger()
}

/** Scopes and refusals stand beside the route already; nobody writes them a second time. */
const describeAccess: SwaggerTransform = ({ schema, url, route }) => {
  const { scopes, refusals = {} } = route.config ?? {}
  if (schema === undefined || scopes === undefined) return { schema, url }
  const isPost = route.method === 'POST'
  const methods = [route.method].flat()
  const errors = new Map<number | 'default', string>([
    [401, 'No token, or one that does not count.'],
    [403, `The token lacks a scope that this call needs: ${scopes.join(', ')}.`],
  ])
  for (const [reason, status] of Object.entries(refusals)) {
    errors.set(status, [errors.get(status), sentenceOf(reason)].filter(Boolean).join(' '))
  }
  if (isPost) {
    errors.set(409, [errors.get(409), 'A request with this Idempotency-Key is under way.'].filter(Boolean).join(' '))
    errors.set(422, [errors.get(422), 'This Idempotency-Key was used otherwise.'].filter(Boolean).join(' '))
  }
  if (!methods.every(isRead)) {
    errors.set(429, [errors.get(429), 'You have changed too much in one minute.'].filter(Boolean).join(' '))
  }
  errors.set('default', 'Any other error.')
  return {
    url,
    schema: {
      ...schema,
      ...(isPost && { headers: { type: 'object', properties: { 'Idempotency-Key': idempotencyKey } } }),
      security: [{ token: [...scopes] }],
      response: {
        ...Object.fromEntries(Array.from(errors, ([status, description]) => [status, { description, $ref: 'Error#' }])),
        ...(schema.response as object | undefined), // a schema for each status
      },
    },
  }
}

const idempotencyKey = {
  type: 'string',
  pattern: '^[!-~]{1,255}$',
  description:
    'Your name for this request. Sent again with the same name within a day, it is done once and answered the same.',
}

/** `comment_missing` → Comment missing. */
function sentenceOf(reason: string): string {
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1).replaceAll('_', ' ')}.`
}

/** A route that PATCH and PUT have in common is two calls, each with a name of its own. */
const tellAliases: SwaggerTransformObject = (document) => {
  if (!('openapiObject' in document)) return document.swaggerObject
  for (const path of Object.values(document.openapiObject.paths ?? {})) {
    if (path?.put?.operationId === undefined || path.put.operationId !== path.patch?.operationId) continue
    // It is the very object of the other.
    path.put = { ...path.put, operationId: `${path.put.operationId}WithPut`, description: 'The same as PATCH.' }
  }
  return document.openapiObject
}
