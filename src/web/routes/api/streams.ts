import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Scope } from '../../../domain/accounts/scopes.js'
import { listAspectStream, listStream } from '../../../domain/streams/streams.js'
import type { ListedPost } from '../../../persistence/posts/list-posts.js'
import type { Page, PageKey, TimePage } from '../../../persistence/sql/keyset-page.js'
import { linkTimePages, readTimePage, timePaging } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentPost } from '../../presenters/posts.js'
import { Post } from '../../schemas/posts.js'
import { refTo } from '../../schemas/references.js'
import { RequestFault } from '../../server/request-faults.js'

const tags = ['Streams']
const response = { 200: Type.Array(refTo(Post), { description: 'The posts of the stream, newest first.' }) }
const leftOut =
  'Newest first. Private posts need the scope `private:read`. Posts that you have hidden and posts of people you block are left out.'

interface SimpleStream {
  readonly name: 'main' | 'activity' | 'mentions' | 'tags' | 'liked' | 'commented'
  readonly summary: string
  readonly description: string
  readonly scopes: readonly Scope[]
  /** The sort key of a post. Default: when it was created. */
  readonly keyOf?: (post: ListedPost) => PageKey
}

const streams: readonly SimpleStream[] = [
  {
    name: 'main',
    summary: 'Read the main stream',
    description: `Your own posts, posts of people in your aspects, public posts with a tag that you follow, and posts that mention you. ${leftOut}`,
    scopes: ['public:read'],
  },
  {
    name: 'activity',
    summary: 'Read the posts that you take part in',
    description: `Your own posts and posts that you are subscribed to, by the time of their last comment. ${leftOut}`,
    scopes: ['public:read'],
    keyOf: ({ interactedAt, id }) => ({ time: interactedAt, id }),
  },
  {
    name: 'mentions',
    summary: 'Read the posts that mention you',
    description: `Mentions in posts, not in comments. ${leftOut}`,
    scopes: ['public:read'],
  },
  {
    name: 'tags',
    summary: 'Read the posts with a tag that you follow',
    description: leftOut,
    scopes: ['public:read', 'tags:read'],
  },
  { name: 'liked', summary: 'Read the posts that you like', description: leftOut, scopes: ['public:read'] },
  {
    name: 'commented',
    summary: 'Read the posts that you have commented on',
    description: leftOut,
    scopes: ['public:read'],
  },
]

/** Streams: lists of posts selected by their relation to the viewer. */
export const streamRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const { name, summary, description, scopes, keyOf } of streams) {
    app.get(
      `/streams/${name}`,
      {
        schema: {
          operationId: `get${capitalise(name)}Stream`,
          tags,
          summary,
          description,
          response,
          querystring: Type.Object(timePaging),
        },
        config: { scopes },
      },
      async (request, reply) => {
        const page = readTimePage(request)
        const posts = await readList(request, (services) => listStream(services, request.viewer, name, page))
        return presentStream(request, reply, { page, posts, keyOf })
      },
    )
  }

  app.get(
    '/streams/aspects',
    {
      schema: {
        operationId: 'getAspectsStream',
        tags,
        summary: 'Read the posts of people in your aspects',
        description: `Includes your own posts that are public or shared with one of these aspects. ${leftOut}`,
        querystring: Type.Object({
          aspect_ids: Type.Optional(
            Type.String({
              description:
                'A JSON array of ids, as `[1,2]`. Empty or absent: all aspects, and all of your own posts. Ids that are not yours are ignored.',
            }),
          ),
          ...timePaging,
        }),
        response,
      },
      config: { scopes: ['public:read', 'contacts:read', 'private:read'] },
    },
    async (request, reply) => {
      const aspectIds = readAspectIds(request.query.aspect_ids ?? '')
      const page = readTimePage(request)
      const posts = await readList(request, (services) => listAspectStream(services, request.viewer, aspectIds, page))
      return presentStream(request, reply, { page, posts })
    },
  )
}

interface StreamPage {
  readonly page: TimePage
  readonly posts: Page<ListedPost>
  readonly keyOf?: SimpleStream['keyOf']
}

/** Sets the links to other pages, and returns the posts as clients see them. */
function presentStream(request: FastifyRequest, reply: FastifyReply, { page, posts, keyOf }: StreamPage) {
  linkTimePages(reply, page, posts, { hasNextOnly: true, ...(keyOf && { keyOf }) })
  return posts.items.map((post) => presentPost(post, request.server.services.config))
}

function readAspectIds(text: string): readonly number[] {
  const ids = text.trim() === '' ? [] : parseJson(text)
  if (Array.isArray(ids) && ids.every((id): id is number => Number.isSafeInteger(id))) return ids
  throw new RequestFault(422, '"aspect_ids" is not a JSON array of ids, as [1,2].', { field: 'aspect_ids' })
}

/** Undefined: the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function capitalise(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}
