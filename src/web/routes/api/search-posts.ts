import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { searchPosts } from '../../../domain/streams/streams.js'
import { linkTimePages, readTimePage, timePaging } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentPost } from '../../presenters/posts.js'
import { refTo } from '../../schemas/common.js'
import { Post } from '../../schemas/posts.js'

/** Posts are found by their tags. */
export const searchPostsRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/search/posts',
    {
      schema: {
        operationId: 'searchPosts',
        tags: ['Search'],
        summary: 'Search for posts',
        description:
          'Posts with a tag, newest first. Private posts need the scope `private:read`. Posts that you have hidden and posts of people you block are left out.',
        querystring: Type.Object({ tag: Type.String({ description: 'With or without `#`.' }), ...timePaging }),
        response: { 200: Type.Array(refTo(Post), { description: 'The posts found, newest first.' }) },
      },
      config: { scopes: ['public:read'], refusals: { tag_invalid: { status: 422, field: 'tag' } } },
    },
    async (request, reply) => {
      const page = readTimePage(request)
      const posts = await readList(request, (pod) => searchPosts(pod, request.viewer, request.query.tag, page))
      linkTimePages(request, reply, page, posts)
      return posts.items.map((post) => presentPost(post, app.pod.config.url))
    },
  )
}
