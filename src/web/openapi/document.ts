import swagger, { type SwaggerTransform } from '@fastify/swagger'
import swaggerUi, { type FastifySwaggerUiOptions } from '@fastify/swagger-ui'
import { type FastifyInstance, fastify } from 'fastify'
import { ALL_SCOPES, ALWAYS_GRANTED } from '../../domain/accounts/scopes.js'
import { adminRoutes } from '../routes/admin/admin-routes.js'
import { apiRoutes } from '../routes/api/api-routes.js'
import { Aspect } from '../schemas/aspects.js'
import { Comment, NewComment } from '../schemas/comments.js'
import { Conversation, Message, StartedConversation } from '../schemas/conversations.js'
import { ErrorBody, ErrorReasonName } from '../schemas/error-body.js'
import { InvitationSchema } from '../schemas/invitations.js'
import { LiveCase, LiveMessage, StreamEventData, StreamEvents, StreamReset } from '../schemas/live.js'
import { CleanPreviewSchema, ClusterDetailsSchema, ClusterSchema } from '../schemas/moderation/clusters.js'
import { DryRunSchema, FilterDetailsSchema, FilterSchema } from '../schemas/moderation/filters.js'
import {
  ActionSchema,
  AuditEntrySchema,
  CaseDetailsSchema,
  CaseEventSchema,
  CaseReportSchema,
  ContentSchema,
  ListedCaseSchema,
  ListedPersonSchema,
  OwnReportSchema,
  PersonDetailsSchema,
} from '../schemas/moderation/moderation.js'
import { IpRuleSchema, MailRuleSchema } from '../schemas/moderation/network-rules.js'
import { OperationSchema, PodRuleImportSchema } from '../schemas/moderation/pod-rule-imports.js'
import { PodPreviewSchema, PodRuleSchema } from '../schemas/moderation/pod-rules.js'
import { Notification } from '../schemas/notifications.js'
import {
  DeadLetterSchema,
  QuarantinedSchema,
  QueueJobSchema,
  QueueSchema,
  TraceStepSchema,
} from '../schemas/operations.js'
import { OtherPerson, OwnProfile, PersonSummary } from '../schemas/people.js'
import { ListedPodSchema, PodSchema } from '../schemas/pods.js'
import { Photo, Picture, Poll, Post, Root } from '../schemas/posts.js'
import { queryText } from '../schemas/query-text.js'
import { Like, Reshare } from '../schemas/reactions.js'
import { UserSettings } from '../schemas/settings.js'
import { SignUpSchema } from '../schemas/sign-ups.js'
import { UserNoticeSchema } from '../schemas/user-notices.js'
import { addCompression } from '../server/compression.js'
import { DOCS_SCRIPT, DOCS_STYLE } from './docs-theme.js'
import { buildErrorResponses } from './error-responses.js'
import { finishDocument, RESPONSE_HEADERS } from './finish-document.js'

const VERSION = '1.0.0'

const INTRODUCTION = `The API of this pod for client apps, as JSON over HTTP.

**Tokens.** Every request carries an access token as \`Authorization: Bearer …\`. Apps get one with OpenID Connect
(\`/.well-known/openid-configuration\`); for a first try, the operator of the pod runs \`pod token alice --scopes "profile
public:read"\`. Each operation lists the scopes that it needs; every token has \`${ALWAYS_GRANTED}\`. A missing or invalid token is
a 401, a missing scope a 403.

**Bodies** are JSON objects. Forms with bracket keys (\`tags[]=a\`) are accepted too. Unknown fields are ignored.

**Errors** have a body with \`code\` (the HTTP status), \`message\` (for people; the wording may change) and \`reason\` (for programs;
stable). Each operation lists the reasons that it can answer with. When a field or parameter is wrong, \`field\` names it, and
\`fields\` lists all of them if there are several. After a 429 or 503, \`Retry-After\` says when to try again. Every response has an
\`X-Request-Id\`: report it to the operator when something is wrong. Any request can also be answered with 400
(\`malformed_request\`), 408 (\`request_timeout\`), 414 (\`url_too_long\`) or 431 (\`headers_too_large\`).

**Times** are UTC with three decimals, as \`2025-03-01T08:15:30.250Z\`. **URLs** of pictures and pages are absolute. Repeated
slashes and a slash at the end of a path are ignored.

**Lists** are paged. The \`Link\` header holds the URL of the next page (\`rel="next"\`, only if there are more items) and of the
previous one (\`rel="previous"\`, where newer items appear). Use these URLs as they are.

**Idempotency.** Each \`POST\` accepts an \`Idempotency-Key\` of 1 to 255 visible ASCII characters, an extension of this pod. If a
response is lost, send the same request with the same key again within a day: it runs only once, and the retry gets the stored
response with \`Idempotency-Replayed: true\`. While the first request runs, the answer is 409 with \`Retry-After\`. A key that was used
for a different request is a 422. A key belongs to your authorization, whichever of its tokens you use. 429 and 5xx responses
are not stored. If the pod crashes mid-request, the key answers 409 for four minutes; after that a retry either runs the request
or, if it had already taken effect, answers 409 without \`Retry-After\`: fetch the resource to check. Only an upload may run twice
in that case.

**The admin API** below \`/api/admin/v1\` is for moderators and admins. Its scopes \`moderation\` and \`administration\` are granted only to
users with the role, and the role is checked at every request (403 \`role_needed\`). Every action needs a \`reason\` and is recorded in
the audit log. Dangerous actions need \`confirm\`: without it the answer is 409 \`confirmation_needed\` with a \`preview\`. A change of a
single object with the \`ETag\` of its GET as \`If-Match\` is refused with 412 \`changed_meanwhile\` (settings: \`changed_since\`) if it was changed in the meantime.

**Live events.** \`GET /api/v1/streaming\` sends notifications, messages and posts as they arrive, so clients need not poll.

**Examples** are complete requests. Replace their guids and ids with those of your pod.

**Compatibility.** Fields and reasons are added, never removed and never given another meaning.`

const VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">'

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

/** Schemas that several operations share, each described once. */
const NAMED_SCHEMAS = [
  ErrorReasonName,
  ErrorBody,
  PersonSummary,
  OwnProfile,
  OtherPerson,
  Picture,
  Photo,
  Poll,
  Root,
  Post,
  Comment,
  NewComment,
  Conversation,
  StartedConversation,
  Message,
  Notification,
  Like,
  Reshare,
  Aspect,
  LiveMessage,
  LiveCase,
  StreamReset,
  StreamEvents,
  StreamEventData,
  FilterSchema,
  FilterDetailsSchema,
  DryRunSchema,
  ListedPersonSchema,
  PersonDetailsSchema,
  ActionSchema,
  AuditEntrySchema,
  ContentSchema,
  ListedCaseSchema,
  CaseReportSchema,
  CaseEventSchema,
  CaseDetailsSchema,
  OwnReportSchema,
  UserNoticeSchema,
  UserSettings,
  PodRuleSchema,
  PodPreviewSchema,
  ListedPodSchema,
  PodSchema,
  PodRuleImportSchema,
  OperationSchema,
  InvitationSchema,
  SignUpSchema,
  MailRuleSchema,
  IpRuleSchema,
  ClusterSchema,
  ClusterDetailsSchema,
  CleanPreviewSchema,
  QueueSchema,
  QueueJobSchema,
  QuarantinedSchema,
  DeadLetterSchema,
  TraceStepSchema,
]

/** Describes the routes that are registered after it, so it must come first. */
async function addApiDescription(app: FastifyInstance): Promise<void> {
  for (const schema of NAMED_SCHEMAS) app.addSchema(schema)
  await app.register(swagger, {
    hideUntagged: true,
    transform: describeAccess,
    transformObject: finishDocument,
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
        { name: 'Own profile', description: 'The profile of the person the token belongs to.' },
        { name: 'People', description: 'Other people, local and remote: profiles, posts, photos and blocks.' },
        { name: 'Comments', description: 'Comments on a post.' },
        {
          name: 'Reports',
          description: 'Reports of posts, comments, people and messages to the moderators of this pod.',
        },
        { name: 'Post interactions', description: 'Subscribe to, mute and hide a post, and vote in its poll.' },
        { name: 'Conversations', description: 'Private conversations and their messages.' },
        { name: 'Notifications', description: 'Notifications about what other people do.' },
        { name: 'Aspects', description: 'Your groups of contacts, and the people in them.' },
        { name: 'Posts', description: 'Posts, public or shared with aspects.' },
        { name: 'Photos', description: 'Your photos, and single photos of other people.' },
        { name: 'Exports', description: 'Archives of your account, and your photos as a zip.' },
        { name: 'Imports', description: 'Archives of other accounts that are imported into yours.' },
        { name: 'Likes', description: 'Likes of posts and comments.' },
        { name: 'Reshares', description: 'Reshares of public posts.' },
        { name: 'Tags', description: 'The tags that you follow.' },
        { name: 'Streams', description: 'Posts of the people and tags you follow, in several selections.' },
        { name: 'Search', description: 'Search for people, posts and tags.' },
        { name: 'Live', description: 'Events as they happen.' },
        { name: 'Cases', description: 'Admin API: the reports of users, one case for each thing that was reported.' },
        { name: 'Content', description: 'Admin API: actions on posts and comments.' },
        { name: 'Moderated people', description: 'Admin API: local and remote people, and actions on them.' },
        { name: 'Actions', description: 'Admin API: the actions that were taken, and their undo.' },
        { name: 'Audit', description: 'Admin API: the log of all actions of moderators and admins.' },
        { name: 'Roles', description: 'Admin API: moderators and admins.' },
        { name: 'Invitations', description: 'Admin API: invitations to sign up.' },
        { name: 'Sign-ups', description: 'Admin API: sign-ups that wait for a decision.' },
        { name: 'Operations', description: 'Admin API: long work in the background.' },
        { name: 'Filters', description: 'Admin API: filters for texts, links and tags.' },
        { name: 'Clusters', description: 'Admin API: waves of spam, and their cleaning.' },
        { name: 'Pods', description: 'Admin API: other pods and the rules for them.' },
        { name: 'Queues', description: 'Admin API: the queues and their jobs.' },
        { name: 'Machines', description: 'Admin API: processes, database and storage.' },
        { name: 'Deliveries', description: 'Admin API: where posts were sent.' },
        { name: 'Dead letters', description: 'Admin API: jobs and deliveries that were given up.' },
        { name: 'Quarantine', description: 'Admin API: messages of other pods that were rejected.' },
      ],
      components: {
        headers: RESPONSE_HEADERS,
        securitySchemes: {
          openid: {
            type: 'openIdConnect',
            openIdConnectUrl: '/.well-known/openid-configuration',
            description: 'How an app gets an access token for a person, with any of the scopes below.',
          },
          token: {
            type: 'http',
            scheme: 'bearer',
            description: `An access token. Scopes: ${ALL_SCOPES.map((scope) => `\`${scope}\``).join(', ')}.`,
          },
        },
      },
    },
  })
}

/**
 * The pages at `/api/docs` (client API) and `/api/docs/admin`, and the document of both at `/api/docs/json`. One page for all operations
 * is too much for the library: above about 120 it shows the first three only.
 */
export async function addApiDocs(app: FastifyInstance): Promise<void> {
  await addApiDescription(app)
  await app.register(async (docs) => {
    addCompression(docs)
    docs.addHook('onRoute', (route) => {
      route.config = { ...route.config, public: true, quiet: true }
    })
    // The page of the library has no viewport tag, so phones would show it at desktop width.
    docs.addHook('onSend', async (_request, _reply, payload) =>
      typeof payload === 'string' ? payload.replace('<head>', `<head>\n      ${VIEWPORT}`) : payload,
    )
    const pages = [
      { routePrefix: '/api/docs', theme: themeOf('API for client apps') },
      { routePrefix: '/api/docs/admin', theme: themeOf('API for moderators and admins') },
    ]
    // The library decorates its context, so each page has its own.
    for (const page of pages)
      await docs.register(async (context) => {
        await context.register(swaggerUi, { ...PAGE_OPTIONS, ...page })
      })
  })
}

const PAGE_OPTIONS = {
  staticCSP: DOCS_POLICY,
  // Without the top bar, which shows the name of the library and a field to load other documents.
  uiConfig: {
    layout: 'BaseLayout',
    docExpansion: 'list',
    deepLinking: true,
    validatorUrl: 'none',
    // The page says which part of the document it shows; other readers of the document get all of it.
    requestInterceptor: (request) => ({
      ...request,
      url: request.url.replace(
        /(?<=\/api\/docs)(\/admin)?\/json$/,
        (end: string) => `${end}?part=${end === '/json' ? 'client' : 'admin'}`,
      ),
    }),
  },
  transformSpecificationClone: false,
  transformSpecification: (document, request) => partOf(document, queryText(request, 'part')),
} satisfies FastifySwaggerUiOptions

function themeOf(title: string) {
  return {
    title,
    css: [{ filename: 'pod.css', content: DOCS_STYLE }],
    js: [{ filename: 'pod.js', content: DOCS_SCRIPT }],
  }
}

/** The operations of one API, with the tags that they use; all of them without `part`. */
function partOf(document: Readonly<Record<string, unknown>>, part: string | undefined): Record<string, unknown> {
  if (part !== 'admin' && part !== 'client') return document
  const { paths, tags } = document as unknown as ApiDocument // as the options of `addApiDescription` build it
  const pathsOfPart = Object.entries(paths).filter(([path]) => path.startsWith('/api/admin/') === (part === 'admin'))
  const usedTags = new Set(
    pathsOfPart.flatMap(([, operations]) => Object.values(operations).flatMap((operation) => operation.tags ?? [])),
  )
  return { ...document, paths: Object.fromEntries(pathsOfPart), tags: tags.filter(({ name }) => usedTags.has(name)) }
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly tags?: readonly string[] }>>>>
  readonly tags: readonly { readonly name: string }[]
}

/** Generates the document from the routes, without a pod. */
export async function describeApi(): Promise<object> {
  const app = fastify()
  await addApiDescription(app)
  await app.register(apiRoutes, { prefix: '/api/v1' })
  await app.register(adminRoutes, { prefix: '/api/admin/v1' })
  await app.ready()
  return app.swagger()
}

/** Adds the scopes, errors and the Idempotency-Key from the settings of a route. */
const describeAccess: SwaggerTransform = ({ schema, url, route }) => {
  const { scopes } = route.config ?? {}
  if (schema === undefined || scopes === undefined) return { schema, url }
  return {
    url,
    schema: {
      ...schema,
      ...(route.method === 'POST' && {
        headers: { type: 'object', properties: { 'Idempotency-Key': idempotencyKey } },
      }),
      security: [{ token: [...scopes] }, { openid: [...scopes] }],
      response: {
        ...buildErrorResponses(route, schema),
        ...(schema.response as object | undefined), // a schema for each status
      },
    },
  }
}

const idempotencyKey = {
  type: 'string',
  pattern: '^[!-~]{1,255}$',
  description:
    'A key of your choice for this request. Repeated with the same key within a day, the request runs once and gets the same response.',
}
