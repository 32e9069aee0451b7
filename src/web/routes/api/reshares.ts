import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { requirePostOrComment } from '../../../domain/posts/post-access.js'
import { createReshare, listReshares } from '../../../domain/posts/reshares.js'
import { findCreatedPost } from '../../../domain/posts/visible-posts.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { indexPaging, linkIndexPages, readIndexPage } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentPost } from '../../presenters/posts.js'
import { presentReshare } from '../../presenters/reactions.js'
import { Post } from '../../schemas/posts.js'
import { Reshare } from '../../schemas/reactions.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Reshares']
const params = Type.Object({ post_guid: Type.String() })

/** Reshares of public posts. */
export const reshareRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findPost = objectFinder<Static<typeof params>>((request) =>
    requirePostOrComment(request.services, request.viewer, { postGuid: request.params.post_guid }),
  )

  app.get(
    '/posts/:post_guid/reshares',
    {
      schema: {
        operationId: 'listReshares',
        tags,
        summary: 'List the reshares of a post',
        description: 'Your own reshare comes first. A private post has none.',
        params,
        querystring: Type.Object(indexPaging),
        response: { 200: Type.Array(refTo(Reshare), { description: 'The reshares of the post.' }) },
      },
      config: { scopes: ['public:read'], refusals: { post_not_found: 404 }, findObject: findPost },
    },
    async (request, reply) => {
      const page = readIndexPage(request)
      const reshares = await readList(request, async (services) => {
        const post = await requirePostOrComment(services, request.viewer, { postGuid: request.params.post_guid })
        return listReshares(services, request.viewer, post, page)
      })
      linkIndexPages(reply, page, reshares)
      return reshares.items.map((reshare) => presentReshare(reshare, app.services.config))
    },
  )

  app.post(
    '/posts/:post_guid/reshares',
    {
      schema: {
        operationId: 'createReshare',
        tags,
        summary: 'Reshare a post',
        description:
          'Shows a public post of another person to your readers, once. Resharing a reshare reshares its original post.',
        params,
        response: { 200: refTo(Post, 'The reshare as a post.') },
      },
      config: {
        scopes: ['public:modify'],
        refusals: { post_not_found: 404, root_not_found: 422, not_public: 422, own_post: 422, already_reshared: 409 },
      },
    },
    async (request) => {
      const { guid } = await createReshare(request.services, request.viewer, request.params.post_guid)
      return presentPost(await findCreatedPost(request.services, request.viewer, guid), app.services.config)
    },
  )
}
