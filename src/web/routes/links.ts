import type { FastifyPluginAsync } from 'fastify'
import { lookUpLinked, lookUpPerson } from '../../federation/look-up.js'
import { fetchableKind } from '../../federation/serve-entity.js'
import { type Fetchable, findFetchable } from '../../persistence/fetchable.js'
import type { Pod } from '../../pod.js'
import { type EntityLink, readLinks } from '../../protocol/mentions.js'
import { RequestFault } from '../faults.js'
import { queryText } from '../query-text.js'

/** `diaspora://` links, from wherever somebody followed one, to a page (FEDERATION.md, "Mentions, links and tags"). */
export const linkRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app

  app.get('/link', { config: { public: true }, schema: { hide: true } }, async (request, reply) => {
    // A plus sign that stands in a query as it is reads as a space.
    const text = (queryText(request, 'q') ?? '').trim().replace(/^web diaspora:/, 'web+diaspora:')
    const path = (await entityPath(pod, text)) ?? (await personPath(pod, text))
    if (path === undefined) throw new RequestFault(404, 'What this link leads to is not known here.')
    return reply.redirect(`${pod.config.url}${path}`, 302)
  })
}

async function entityPath(pod: Pod, text: string): Promise<string | undefined> {
  if (!/^(web\+)?diaspora:\/\//.test(text)) return undefined
  const [link] = readLinks(text)
  const kind = link && fetchableKind(link.type)
  if (link === undefined || kind === undefined) return undefined
  const known = await findFetchable(pod.db, kind, link.guid)
  if (known !== undefined || kind === 'comment') return pathTo(known, link)
  await lookUpLinked(pod, link, kind)
  return pathTo(await findFetchable(pod.db, kind, link.guid), link)
}

/** A link may claim any author; it only leads on if that is true. */
function pathTo(found: Fetchable | undefined, { author }: EntityLink): string | undefined {
  if (found?.author.address !== author || found.postAuthor.closed) return undefined
  return found.record === 'comment' ? `/posts/${found.postGuid}#${found.guid}` : `/posts/${found.postGuid}`
}

async function personPath(pod: Pod, text: string): Promise<string | undefined> {
  const [, address = ''] = /^(?:web\+)?diaspora:\/\/([^/]{1,510})\/?$/.exec(text) ?? []
  const person = await lookUpPerson(pod, address)
  return person && `/people/${person.guid}`
}
