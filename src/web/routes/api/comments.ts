import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { createComment, getComment, listComments } from '../../../domain/interactions/comments.js'
import { deleteComment } from '../../../domain/posts/deletions.js'
import { requirePostOrComment } from '../../../domain/posts/post-access.js'
import { readDialect } from '../../api/dialect.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { linkTimePages, readTimePage, timePaging } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentComment, presentNewComment } from '../../presenters/comments.js'
import { Comment, NewComment } from '../../schemas/comments.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Comments']
const postParams = Type.Object({ post_guid: Type.String() })
const commentParams = Type.Object({ post_guid: Type.String(), comment_guid: Type.String() })

/** Comments on a post. */
export const commentRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findPost = objectFinder<Static<typeof postParams>>((request) =>
    requirePostOrComment(request.services, request.viewer, { postGuid: request.params.post_guid }),
  )

  app.get(
    '/posts/:post_guid/comments',
    {
      schema: {
        operationId: 'listComments',
        tags,
        summary: 'List the comments on a post',
        description: 'Oldest first by default. The comments on a private post need the scope `private:read`.',
        params: postParams,
        querystring: Type.Object(timePaging),
        response: { 200: Type.Array(refTo(Comment), { description: 'The comments on the post.' }) },
      },
      config: { scopes: ['public:read'], refusals: { post_not_found: 404 }, findObject: findPost },
    },
    async (request, reply) => {
      const { post_guid: postGuid } = request.params
      const page = readTimePage(request)
      const comments = await readList(request, (services) => listComments(services, request.viewer, postGuid, page))
      linkTimePages(reply, page, comments, { order: 'oldest first' })
      return comments.items.map((comment) => presentComment(comment, app.services.config))
    },
  )

  app.post(
    '/posts/:post_guid/comments',
    {
      schema: {
        operationId: 'createComment',
        tags,
        summary: 'Comment on a post',
        description:
          'You are subscribed to the post from then on. The author, subscribers and mentioned people are notified.',
        params: postParams,
        body: Type.Object({ body: Type.String({ description: 'Markdown, 1 to 65 535 characters.' }) }),
        response: { 201: refTo(NewComment, 'The new comment.') },
      },
      config: {
        findObject: findPost,
        scopes: ['interactions'],
        refusals: {
          post_not_found: 404,
          comment_not_found: 404,
          text_invalid: 422,
          filtered: 422,
          blocked_by_author: 422,
          invalid: 422,
          malformed: 422,
        },
      },
    },
    async (request, reply) => {
      const { services } = request
      const { id } = await createComment(services, request.viewer, {
        postGuid: request.params.post_guid,
        text: request.body.body,
      })
      const comment = await getComment(services, request.viewer, id)
      return reply.code(201).send(presentNewComment(comment, readDialect(request)))
    },
  )

  app.delete(
    '/posts/:post_guid/comments/:comment_guid',
    {
      schema: {
        operationId: 'deleteComment',
        tags,
        summary: 'Delete a comment',
        description: 'One of your own comments, or any comment on your post. It is retracted on all pods.',
        params: commentParams,
        response: { 204: Type.Null({ description: 'The comment is deleted.' }) },
      },
      config: {
        scopes: ['interactions'],
        refusals: { post_not_found: 404, comment_not_found: 410, not_author: 403 },
      },
    },
    async (request, reply) => {
      const { post_guid: postGuid, comment_guid: commentGuid } = request.params
      await deleteComment(request.services, request.viewer, { postGuid, commentGuid })
      return reply.code(204).send(null)
    },
  )
}
