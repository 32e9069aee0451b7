import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { deletePost } from '../../../domain/posts/deletions.js'
import { publishPost } from '../../../domain/posts/publish-post.js'
import { findCreatedPost, findVisiblePost } from '../../../domain/posts/visible-posts.js'
import { presentPost } from '../../presenters/posts.js'
import { NewPost, readNewPost } from '../../schemas/new-post.js'
import { Post } from '../../schemas/posts.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Posts']
const params = Type.Object({ post_guid: Type.String() })

/** Public and private posts. */
export const postRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/posts/:post_guid',
    {
      schema: {
        operationId: 'getPost',
        tags,
        summary: 'Read a post',
        description:
          'Posts that you have hidden and posts of people you block are returned too. Private posts need the scope `private:read`.',
        params,
        response: { 200: refTo(Post, 'The post.') },
      },
      config: { scopes: ['public:read'], refusals: { post_not_found: 404 } },
    },
    async (request) => {
      const post = await findVisiblePost(request.services, request.viewer, request.params.post_guid)
      return presentPost(post, app.services.config)
    },
  )

  app.post(
    '/posts',
    {
      schema: {
        operationId: 'createPost',
        tags,
        summary: 'Create a post',
        description:
          'Creates the post with its photos, poll and location, or nothing at all. A private post also needs the scope `private:modify`.',
        body: NewPost,
        response: { 200: refTo(Post, 'The new post.') },
      },
      config: {
        scopes: ['public:modify'],
        refusals: {
          insufficient_scope: { status: 422, field: 'public' },
          text_required: 422,
          text_invalid: 422,
          filtered: 422,
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
      const { guid } = await publishPost(request.services, request.viewer, readNewPost(request.body))
      return presentPost(await findCreatedPost(request.services, request.viewer, guid), app.services.config)
    },
  )

  app.delete(
    '/posts/:post_guid',
    {
      schema: {
        operationId: 'deletePost',
        tags,
        summary: 'Delete one of your posts',
        description:
          'Deletes the post with its comments, likes and photos on all pods. Reshares of it stay, without content. A private post also needs the scope `private:modify`.',
        params,
        response: { 204: Type.Null({ description: 'The post is deleted.' }) },
      },
      config: {
        scopes: ['public:modify'],
        refusals: { post_not_found: 404, not_author: 403, insufficient_scope: 403 },
      },
    },
    async (request, reply) => {
      await deletePost(request.services, request.viewer, request.params.post_guid)
      return reply.code(204).send(null)
    },
  )
}
