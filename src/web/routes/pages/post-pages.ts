import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import {
  findCommentPage,
  findCommentPosition,
  findPublicPost,
  type PagePosition,
  type PublicPost,
} from '../../../domain/posts/public-posts.js'
import { podOrigin } from '../../../federation/discovery/pod-origin.js'
import { findFetchableEntity } from '../../../persistence/outbound/find-fetchable.js'
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
  const { pod } = app
  const config = { public: true } as const
  const schema = { hide: true }

  app.get<ByGuid>('/posts/:guid', { config, schema }, async (request, reply) => {
    const { guid } = request.params
    const found = isGuid(guid) ? await findFetchableEntity(pod.db, 'post', guid) : undefined
    if (found === undefined || found.author.closed) throw noPost()
    if (found.author.pod !== null) {
      const origin = podOrigin(found.author.pod)
      if (origin === undefined) throw noPost()
      return reply.redirect(`${origin}/posts/${guid}`, 302)
    }

    const shared = await findPublicPost(pod, guid)
    if (shared === undefined) throw noPost()
    reply.header('vary', 'accept')
    if (wantsJson(request)) {
      return reply.type('application/json; charset=utf-8').send(presentPublicPost(shared, pod.config))
    }
    const comment = queryText(request, 'comment')
    const position = isGuid(comment ?? '')
      ? await findCommentPosition(pod, shared.post, comment ?? '')
      : readPosition(request)
    const { language } = textsFor(request, reply)
    const html = await app.publicPages.cache.get(keyOf(shared, position, language), async () =>
      app.publicPages.renderer.postPage(language, {
        shared,
        comments: await findCommentPage(pod, shared.post, position),
        position,
      }),
    )
    return reply.type('text/html; charset=utf-8').send(html)
  })

  app.get<ByGuid>('/p/:guid', { config, schema }, async (request, reply) => {
    const { guid } = request.params
    if (!isGuid(guid)) throw noPost()
    return reply.redirect(`${pod.config.url}/posts/${guid}`, 301)
  })
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
