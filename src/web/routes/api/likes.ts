import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { createLike, listLikes } from '../../../domain/interactions/likes.js'
import { deleteLike } from '../../../domain/posts/deletions.js'
import { requirePostOrComment } from '../../../domain/posts/post-access.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { indexPaging, linkIndexPages, readIndexPage } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentLike } from '../../presenters/reactions.js'
import { Like } from '../../schemas/reactions.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Likes']
const ofPost = Type.Object({ post_guid: Type.String() })
const ofComment = Type.Object({ post_guid: Type.String(), comment_guid: Type.String() })

type LikeParams = Static<typeof ofPost> & Partial<Static<typeof ofComment>>

/** The routes of each kind of object that can be liked. */
const likeable = [
  {
    noun: 'post',
    operation: 'Post',
    path: '/posts/:post_guid/likes',
    params: ofPost,
    missing: { post_not_found: 404 },
  },
  {
    noun: 'comment',
    operation: 'Comment',
    path: '/posts/:post_guid/comments/:comment_guid/likes',
    params: ofComment,
    missing: { post_not_found: 404, comment_not_found: 404 },
  },
] as const

/** Likes of posts and comments. */
export const likeRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const { noun, operation, path, params, missing } of likeable) {
    const findTarget = objectFinder<Static<typeof params>>((request) =>
      requirePostOrComment(request.services, request.viewer, targetOf(request.params)),
    )

    app.get(
      path,
      {
        schema: {
          operationId: `listLikesOf${operation}`,
          tags,
          summary: `List the likes of a ${noun}`,
          description: 'Your own like comes first.',
          params,
          querystring: Type.Object(indexPaging),
          response: { 200: Type.Array(refTo(Like), { description: `The likes of the ${noun}.` }) },
        },
        config: { scopes: ['public:read'], refusals: missing, findObject: findTarget },
      },
      async (request, reply) => {
        const page = readIndexPage(request)
        const likes = await readList(request, async (services) => {
          const target = await requirePostOrComment(services, request.viewer, targetOf(request.params))
          return listLikes(services, request.viewer, target, page)
        })
        linkIndexPages(reply, page, likes)
        return likes.items.map((like) => presentLike(like, app.services.config))
      },
    )

    app.post(
      path,
      {
        schema: {
          operationId: `like${operation}`,
          tags,
          summary: `Like a ${noun}`,
          description: 'You may like your own. You are subscribed to the post from then on.',
          params,
          response: { 204: Type.Null({ description: `You like the ${noun}.` }) },
        },
        config: { scopes: ['interactions'], refusals: { ...missing, already_liked: 409, blocked_by_author: 422 } },
      },
      async (request, reply) => {
        await createLike(request.services, request.viewer, targetOf(request.params))
        return reply.code(204).send(null)
      },
    )

    app.delete(
      path,
      {
        schema: {
          operationId: `unlike${operation}`,
          tags,
          summary: `Unlike a ${noun}`,
          description: 'The like is retracted on all pods. Its notification stays.',
          params,
          response: { 204: Type.Null({ description: `You no longer like the ${noun}.` }) },
        },
        config: { scopes: ['interactions'], refusals: { ...missing, not_liked: 410 } },
      },
      async (request, reply) => {
        await deleteLike(request.services, request.viewer, targetOf(request.params))
        return reply.code(204).send(null)
      },
    )
  }
}

function targetOf({ post_guid: postGuid, comment_guid: commentGuid }: LikeParams) {
  return { postGuid, commentGuid }
}
