import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { normaliseSearchedTag, normaliseTagName } from '../../../domain/posts/tags.js'
import type { Post } from '../../../persistence/models/post.js'
import {
  findPublicPost,
  findPublicStreamPage,
  findTagPostPage,
  type PagePosition,
  readPublicPosts,
} from '../../../persistence/posts/public-posts.js'
import type { ListPage } from '../../../persistence/sql/id-page.js'
import { isGuid } from '../../../protocol/values.js'
import { textsFor } from '../../pages/language/request-language.js'
import { readPosition } from '../../pages/list-pages.js'
import { presentOembed } from '../../presenters/oembed.js'
import { queryText } from '../../schemas/query-text.js'
import { pageFault, RequestFault } from '../../server/request-faults.js'
import { tagPath } from '../../text/write-html.js'

/** Lists of public posts: by tag, and all; and the description of one post for other sites (oEmbed). */
export const postListPageRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { url } = services.config
  const config = { public: true } as const
  const schema = { hide: true }

  /** The key has no counters: they may be as old as a cached page. */
  async function sendList(
    request: FastifyRequest,
    reply: FastifyReply,
    list: ListPage<Post>,
    data: { readonly tag: string | undefined; readonly path: string; readonly position: PagePosition | undefined },
  ) {
    const { language } = textsFor(request, reply)
    const key = JSON.stringify(['posts', language, data, list])
    const html = await app.publicPages.cache.get(key, async () =>
      app.publicPages.renderer.postListPage(language, {
        ...data,
        list,
        posts: await readPublicPosts(services.db, list),
      }),
    )
    return reply.type('text/html; charset=utf-8').send(html)
  }

  app.get<{ Params: { name: string } }>('/tags/:name', { config, schema }, async (request, reply) => {
    const tag = readTag(request.params.name)
    if (tag === undefined) throw pageFault(404, 'error.no_tag')
    const position = readPosition(request)
    return sendList(request, reply, await findTagPostPage(services.db, tag, position), {
      tag,
      path: tagPath(tag),
      position,
    })
  })

  app.get('/public', { config, schema }, async (request, reply) => {
    const position = readPosition(request)
    return sendList(request, reply, await findPublicStreamPage(services.db, position), {
      tag: undefined,
      path: '/public',
      position,
    })
  })

  app.get('/oembed', { config, schema }, async (request, reply) => {
    const format = queryText(request, 'format') ?? 'json'
    if (format !== 'json') throw new RequestFault(501, 'The only format is json.')
    const [prefix, guid = ''] = (queryText(request, 'url') ?? '').split(/(?<=\/(?:posts|p)\/)/)
    const isPostUrl = (prefix === `${url}/posts/` || prefix === `${url}/p/`) && isGuid(guid)
    const publicPost = isPostUrl ? await findPublicPost(services.db, guid) : undefined
    if (publicPost?.author.podId !== null || publicPost.author.closedAt !== null) {
      throw new RequestFault(404, 'This is not the address of a public post of this pod.')
    }
    return reply
      .header('access-control-allow-origin', '*')
      .type('application/json; charset=utf-8')
      .send(presentOembed(publicPost, services.config))
  })
}

/** Undefined: the text has no character that a tag can contain, or is too long. */
function readTag(text: string): string | undefined {
  return normaliseTagName(text) === '' ? undefined : normaliseSearchedTag(text)
}
