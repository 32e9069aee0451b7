import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { podOrigin } from '../../../federation/discovery/pod-origin.js'
import { type EntityAuthor, findFetchableEntity, findPublicGuid } from '../../../persistence/outbound/find-fetchable.js'
import {
  findCommentPage,
  findCommentPosition,
  findPublicPost,
  type PagePosition,
  type PublicPost,
} from '../../../persistence/posts/public-posts.js'
import { isGuid } from '../../../protocol/values.js'
import { textsFor } from '../../pages/language/request-language.js'
import { readPosition } from '../../pages/list-pages.js'
import { presentPublicPost } from '../../presenters/posts.js'
import { queryText } from '../../schemas/query-text.js'
import { pageFault, type RequestFault } from '../../server/request-faults.js'

interface ByGuid {
  readonly Params: { readonly guid: string }
}

/** Pages of public posts; a post of another pod redirects to its pod. */
export const postPageRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { public: true } as const
  const schema = { hide: true }

  /** Links of a pod that was taken over have numbers. Private and unknown posts have the same answer. */
  async function leadToPost(number: string, reply: FastifyReply): Promise<FastifyReply> {
    const guid = await findPublicGuid(services.db, Number(number))
    const linkedEntity = guid === undefined ? undefined : await findFetchableEntity(services.db, 'post', guid)
    if (guid === undefined || linkedEntity === undefined || linkedEntity.author.isClosed) throw noPost()
    const { pod: authorPod } = linkedEntity.author
    if (authorPod !== null) return reply.redirect(addressAtPod(authorPod, guid), 302)
    return reply.redirect(`${services.config.url}/posts/${guid}`, 301)
  }

  app.get<ByGuid>('/posts/:guid', { config, schema }, async (request, reply) => {
    const { guid } = request.params
    if (isNumber(guid)) return leadToPost(guid, reply)
    const entity = isGuid(guid) ? await findFetchableEntity(services.db, 'post', guid) : undefined
    if (entity === undefined || entity.author.isClosed) throw noPost()
    if (entity.author.pod !== null) return reply.redirect(addressAtPod(entity.author.pod, guid), 302)

    const publicPost = await findPublicPost(services.db, guid)
    if (publicPost === undefined) throw noPost()
    reply.header('vary', 'accept')
    if (wantsJson(request)) {
      return reply.type('application/json; charset=utf-8').send(presentPublicPost(publicPost, services.config))
    }
    const comment = queryText(request, 'comment')
    const position = isGuid(comment ?? '')
      ? await findCommentPosition(services.db, publicPost.post, comment ?? '')
      : readPosition(request)
    const { language } = textsFor(request, reply)
    const html = await app.publicPages.cache.get(keyOf(publicPost, position, language), async () =>
      app.publicPages.renderer.postPage(language, {
        shared: publicPost,
        comments: await findCommentPage(services.db, publicPost.post, position),
        position,
      }),
    )
    return reply.type('text/html; charset=utf-8').send(html)
  })

  app.get<ByGuid>('/p/:guid', { config, schema }, async (request, reply) => {
    const { guid } = request.params
    if (isNumber(guid)) return leadToPost(guid, reply)
    if (!isGuid(guid)) throw noPost()
    return reply.redirect(`${services.config.url}/posts/${guid}`, 301)
  })
}

/** A number of a post, which is shorter than a guid. */
function isNumber(text: string): boolean {
  return /^[0-9]{1,15}$/.test(text)
}

function addressAtPod(authorPod: NonNullable<EntityAuthor['pod']>, guid: string): string {
  const origin = podOrigin(authorPod)
  if (origin === undefined) throw noPost()
  return `${origin}/posts/${guid}`
}

/** Changes with the counters; profiles and names may be seconds old. */
function keyOf({ post, root }: PublicPost, position: PagePosition | undefined, language: string): string {
  const counts = [post, root?.post].map((each) => each && [each.commentsCount, each.likesCount, each.resharesCount])
  const votes = post.poll?.answers?.map(({ voteCount }) => voteCount)
  return JSON.stringify(['post', post.guid, counts, votes, position, language])
}

function wantsJson({ headers }: FastifyRequest): boolean {
  const accept = headers.accept ?? ''
  return accept.includes('application/json') && !accept.includes('text/html')
}

/** Private or unknown: the same answer. */
function noPost(): RequestFault {
  return pageFault(404, 'error.no_post')
}
