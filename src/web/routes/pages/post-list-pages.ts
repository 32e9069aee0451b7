import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { findKnownPerson } from '../../../domain/people/people.js'
import {
  findPublicPost,
  findPublicPostPage,
  findPublicStreamPage,
  findTagPostPage,
  type ListPage,
  type PagePosition,
  readPublicPosts,
} from '../../../domain/posts/public-posts.js'
import { normaliseSearchedTag, normaliseTagName } from '../../../domain/posts/tags.js'
import type { Post } from '../../../persistence/models/post.js'
import { addressOf } from '../../../protocol/address.js'
import { isGuid } from '../../../protocol/values.js'
import { readPosition } from '../../pages/list-pages.js'
import { presentOembed } from '../../presenters/oembed.js'
import { queryText } from '../../schemas/query-text.js'
import { RequestFault } from '../../server/request-faults.js'
import { tagPath } from '../../text/write-html.js'

/** Lists of public posts: by tag, all, as a feed of one person; and the description of one post for other sites (oEmbed). */
export const postListPageRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const { url, host } = pod.config
  const config = { public: true } as const
  const schema = { hide: true }

  /** The key has no counters: they may be as old as a cached page. */
  async function sendList(
    reply: FastifyReply,
    list: ListPage<Post>,
    facts: { readonly tag: string | undefined; readonly path: string; readonly position: PagePosition | undefined },
  ) {
    const key = JSON.stringify(['posts', facts, list])
    const html = await app.publicPages.cache.get(key, async () =>
      app.publicPages.renderer.postListPage({ ...facts, list, posts: await readPublicPosts(pod, list) }),
    )
    return reply.type('text/html; charset=utf-8').send(html)
  }

  app.get<{ Params: { name: string } }>('/tags/:name', { config, schema }, async (request, reply) => {
    const tag = readTag(request.params.name)
    if (tag === undefined) throw new RequestFault(404, 'This is not a tag.')
    const position = readPosition(request)
    return sendList(reply, await findTagPostPage(pod, tag, position), { tag, path: tagPath(tag), position })
  })

  app.get('/public', { config, schema }, async (request, reply) => {
    const position = readPosition(request)
    return sendList(reply, await findPublicStreamPage(pod, position), { tag: undefined, path: '/public', position })
  })

  // The addresses of diaspora*: feed readers keep them for years.
  app.get<{ Params: { name: string } }>('/public/:name', { config, schema }, async (request, reply) => {
    const username = request.params.name.replace(/\.atom$/, '')
    const address = addressOf(`${username}@${host}`)
    const person = address === undefined ? undefined : await findKnownPerson(pod, { address })
    if (person?.podId !== null || person.profile === undefined) {
      throw new RequestFault(404, 'This person is not known on this pod.')
    }
    if (person.closedAt !== null) throw new RequestFault(410, 'This account was closed.')
    if (username === request.params.name) return reply.redirect(`${url}/people/${person.guid}`, 302)
    const { profile } = person
    const list = await findPublicPostPage(pod, person.id)
    const key = JSON.stringify(['feed', person.guid, person.name, profile, list])
    const feed = await app.publicPages.cache.get(key, async () =>
      app.publicPages.renderer.personFeed({ person, profile, posts: await readPublicPosts(pod, list) }),
    )
    return reply.type('application/atom+xml; charset=utf-8').send(feed)
  })

  app.get('/oembed', { config, schema }, async (request, reply) => {
    const format = queryText(request, 'format') ?? 'json'
    if (format !== 'json') throw new RequestFault(501, 'The only format is json.')
    const [prefix, guid = ''] = (queryText(request, 'url') ?? '').split(/(?<=\/(?:posts|p)\/)/)
    const isPostUrl = (prefix === `${url}/posts/` || prefix === `${url}/p/`) && isGuid(guid)
    const shared = isPostUrl ? await findPublicPost(pod, guid) : undefined
    if (shared?.author.podId !== null || shared.author.closedAt !== null) {
      throw new RequestFault(404, 'This is not the address of a public post of this pod.')
    }
    return reply
      .header('access-control-allow-origin', '*')
      .type('application/json; charset=utf-8')
      .send(presentOembed(shared, pod.config))
  })
}

/** Undefined: the text has no character that a tag can contain, or is too long. */
function readTag(text: string): string | undefined {
  return normaliseTagName(text) === '' ? undefined : normaliseSearchedTag(text)
}
