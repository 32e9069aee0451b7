import type { FastifyPluginAsync } from 'fastify'
import { type Lookup, lookUpLinkedEntity, lookUpPerson, lookUpPost } from '../../../federation/discovery/lookups.js'
import type { Person } from '../../../persistence/models/person.js'
import { type FetchableEntity, findFetchableEntity } from '../../../persistence/outbound/find-fetchable.js'
import { fetchableKind } from '../../../protocol/entities/registry.js'
import type { EntityLink } from '../../../protocol/mentions.js'
import { readPastedLink } from '../../../protocol/pasted-links.js'
import type { Services } from '../../../services/services.js'
import { queryText } from '../../schemas/query-text.js'
import { pageFault } from '../../server/request-faults.js'

/** Redirects `diaspora://` links to pages (FEDERATION.md, "Mentions, links and tags"). */
export const linkRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app

  app.get('/link', { config: { public: true }, schema: { hide: true } }, async (request, reply) => {
    // An unencoded plus sign in a query is read as a space.
    const text = (queryText(request, 'q') ?? '').trim().replace(/^web diaspora:/, 'web+diaspora:')
    return app.answerLookUp(request, reply, lookUpPath(services, text), {
      known: (path) => reply.redirect(`${services.config.url}${path}`, 302),
      unknown: () => pageFault(404, 'error.link_unknown'),
    })
  })
}

function lookUpPath(services: Services, text: string): Lookup<string> {
  const pastedLink = readPastedLink(text)
  if (pastedLink?.to === 'post') return lookUpPost(services, pastedLink, () => pathToPost(services, pastedLink.guid))
  if (pastedLink?.to !== 'entity') return personPath(services, text)
  const { link } = pastedLink
  const kind = fetchableKind(link.type)
  if (kind === undefined) return { find: async () => undefined }
  const find = async () => pathTo(await findFetchableEntity(services.db, kind, link.guid), link)
  return kind === 'comment' ? { find } : lookUpLinkedEntity(services, link, kind, find)
}

/** A pod has pages of posts of other pods too, so the host says nothing about the author. */
async function pathToPost(services: Services, guid: string): Promise<string | undefined> {
  const fetchableEntity = await findFetchableEntity(services.db, 'post', guid)
  return fetchableEntity === undefined || fetchableEntity.postAuthor.isClosed
    ? undefined
    : `/posts/${fetchableEntity.postGuid}`
}

/** A link may claim any author; it leads to the object only if the claim is true. */
function pathTo(entity: FetchableEntity | undefined, { author }: EntityLink): string | undefined {
  if (entity?.author.address !== author || entity.postAuthor.isClosed) return undefined
  return entity.record === 'comment'
    ? `/posts/${entity.postGuid}?comment=${entity.guid}#${entity.guid}`
    : `/posts/${entity.postGuid}`
}

function personPath(services: Services, text: string): Lookup<string> {
  const { find, requestFromPod } = lookUpPerson(services, text)
  const pathOf = ({ guid }: Person) => `/people/${guid}`
  return {
    async find() {
      const person = await find()
      return person && pathOf(person)
    },
    ...(requestFromPod && {
      async requestFromPod() {
        const lookupResult = await requestFromPod()
        return lookupResult.state === 'found' ? { state: 'found', found: pathOf(lookupResult.found) } : lookupResult
      },
    }),
  }
}
