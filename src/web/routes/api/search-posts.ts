import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { findPostIfVisible } from '../../../domain/posts/visible-posts.js'
import { searchPosts } from '../../../domain/streams/streams.js'
import { type Lookup, lookUpLinkedEntity, lookUpPost } from '../../../federation/discovery/lookups.js'
import type { ListedPost } from '../../../persistence/posts/list-posts.js'
import { fetchableKind } from '../../../protocol/entities/registry.js'
import { readPastedLink } from '../../../protocol/pasted-links.js'
import { linkTimePages, readTimePage, timePaging } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { lookUpForViewer } from '../../limits/remote-search.js'
import { presentPost } from '../../presenters/posts.js'
import { Post } from '../../schemas/posts.js'
import { refTo } from '../../schemas/references.js'
import { RequestFault } from '../../server/request-faults.js'

/** Searches posts by tag or by link. */
export const searchPostsRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/search/posts',
    {
      schema: {
        operationId: 'searchPosts',
        tags: ['Search'],
        summary: 'Search for posts',
        description:
          'Posts with a tag, newest first, or the post that a link leads to. Private posts need the scope `private:read`. Posts that you have hidden and posts of people you block are left out.',
        querystring: Type.Object({
          tag: Type.Optional(Type.String({ description: 'With or without `#`.' })),
          query: Type.Optional(
            Type.String({
              description:
                'Instead of a tag: the link of a post, `https://pod.example/posts/GUID` or `diaspora://alice@pod.example/post/GUID`. A public post that this pod does not know is fetched from that pod. The list has this post or is empty.',
            }),
          ),
          ...timePaging,
        }),
        response: { 200: Type.Array(refTo(Post), { description: 'The posts found, newest first.' }) },
      },
      config: { scopes: ['public:read'], refusals: { field_missing: 422, tag_invalid: { status: 422, field: 'tag' } } },
    },
    async (request, reply) => {
      const page = readTimePage(request)
      const { tag, query } = request.query
      if ((tag === undefined) === (query === undefined)) {
        throw new RequestFault(422, 'Either "tag" or "query" must be given, and not both.', {
          reason: tag === undefined ? 'field_missing' : 'field_invalid',
          field: 'tag',
        })
      }
      if (query !== undefined) {
        const post = await openPost(request, query)
        return post === undefined ? [] : [presentPost(post, app.services.config)]
      }
      const posts = await readList(request, (services) => searchPosts(services, request.viewer, tag ?? '', page))
      linkTimePages(reply, page, posts)
      return posts.items.map((post) => presentPost(post, app.services.config))
    },
  )
}

/** The post that a link leads to, as far as the viewer may see it. */
async function openPost(request: FastifyRequest, text: string): Promise<ListedPost | undefined> {
  const lookUp = lookUpPasted(request, text)
  if (lookUp === undefined) throw new RequestFault(422, '"query" must be the link of a post.', { field: 'query' })
  return lookUpForViewer(request, lookUp)
}

function lookUpPasted({ server: { services }, viewer }: FastifyRequest, text: string): Lookup<ListedPost> | undefined {
  const pastedLink = readPastedLink(text)
  if (pastedLink?.to === 'post')
    return lookUpPost(services, pastedLink, () => findPostIfVisible(services, viewer, pastedLink.guid))
  if (pastedLink?.to !== 'entity' || fetchableKind(pastedLink.link.type) !== 'post') return undefined
  const { link } = pastedLink
  return lookUpLinkedEntity(services, link, 'post', async () => {
    const post = await findPostIfVisible(services, viewer, link.guid)
    // A link may claim any author.
    return post?.author.address === link.author ? post : undefined
  })
}
