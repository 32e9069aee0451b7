import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { deletePost } from '../../../domain/posts/deletions.js'
import { publishPost } from '../../../domain/posts/publish-post.js'
import { findVisiblePost, findWrittenPost } from '../../../domain/posts/visible-posts.js'
import { presentPost } from '../../presenters/posts.js'
import { refTo } from '../../schemas/common.js'
import { NewPost, readNewPost } from '../../schemas/new-post.js'
import { Post } from '../../schemas/posts.js'

const tags = ['Posts']
const params = Type.Object({ post_guid: Type.String() })

/** What people write to everybody, or to some. */
export const postRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/posts/:post_guid',
    {
      schema: {
        operationId: 'getPost',
        tags,
        summary: 'Read a post',
        description:
          'Also one that you have hidden, or whose author you block. A private one is there only with the scope `private:read`.',
        params,
        response: { 200: refTo(Post) },
      },
      config: { scopes: ['public:read'], refusals: { post_not_found: 404 } },
    },
    async (request) => {
      const post = await findVisiblePost(app.pod, request.viewer, request.params.post_guid)
      return presentPost(post, app.pod.config.url)
    },
  )

  app.post(
    '/posts',
    {
      schema: {
        operationId: 'createPost',
        tags,
        summary: 'Write a post',
        description:
          'With all that belongs to it, or nothing at all. A private one needs the scope `private:modify` as well.',
        body: NewPost,
        response: { 200: refTo(Post) },
      },
      config: {
        scopes: ['public:modify'],
        refusals: {
          insufficient_scope: { status: 422, field: 'public' },
          text_required: 422,
          text_invalid: 422,
          aspects_required: 422,
          photos_invalid: 422,
          poll_invalid: 422,
          location_invalid: 422,
          invalid: 422,
          post_not_found: 404,
        },
      },
    },
    async (request) => {
      const { guid } = await publishPost(app.pod, request.viewer, readNewPost(request.body))
      return presentPost(await findWrittenPost(app.pod, request.viewer, guid), app.pod.config.url)
    },
  )

  app.delete(
    '/posts/:post_guid',
    {
      schema: {
        operationId: 'deletePost',
        tags,
        summary: 'Delete a post of your own',
        description:
          'With everything under it, everywhere. Reshares of it stay and have nothing to show. A private one needs the scope `private:modify` as well.',
        params,
        response: { 204: Type.Null({ description: 'Deleted.' }) },
      },
      config: {
        scopes: ['public:modify'],
        refusals: { post_not_found: 404, not_author: 403, insufficient_scope: 403 },
      },
    },
    async (request, reply) => {
      await deletePost(app.pod, request.viewer, request.params.post_guid)
      return reply.code(204).send(null)
    },
  )
}
