import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { findMovedLocalPerson, listFormerAddresses, type MovedPerson } from '../../../domain/people/moved-people.js'
import { findKnownPerson, findLocalPerson } from '../../../domain/people/people.js'
import { lookUpFollowUrl, readVisitorAccount } from '../../../federation/discovery/follow-url.js'
import { lookUpPerson } from '../../../federation/discovery/lookups.js'
import { podOrigin } from '../../../federation/discovery/pod-origin.js'
import type { Person } from '../../../persistence/models/person.js'
import { findPublicPostPage, listPublicPosts, readPublicPosts } from '../../../persistence/posts/public-posts.js'
import { parseAddress } from '../../../protocol/address.js'
import { isGuid } from '../../../protocol/values.js'
import { followPage } from '../../pages/follow-page.js'
import { formPolicy } from '../../pages/forms.js'
import { textsFor } from '../../pages/language/request-language.js'
import { readPosition } from '../../pages/list-pages.js'
import { presentStreamItem } from '../../presenters/posts.js'
import { queryText } from '../../schemas/query-text.js'
import { pageFault, type RequestFault } from '../../server/request-faults.js'

/** The form for following from another pod is sent to this pod. */
const FOLLOW_FORM_POLICY = formPolicy({ mayLeadToClient: false })

interface ByGuid {
  readonly Params: { readonly guid: string }
}

/** Public pages and feeds of local people; a person of another pod redirects to their pod. */
export const personPageRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { url, host } = services.config
  const config = { public: true } as const
  const schema = { hide: true }

  async function findByGuid(guid: string): Promise<Person | undefined> {
    return isGuid(guid) ? findKnownPerson(services, { guid }) : undefined
  }
  const findPerson = async (guid: string) => requireOpen(await findByGuid(guid))

  /** The account of a person who has moved is closed. */
  async function findMove(person: Person | undefined): Promise<MovedPerson | undefined> {
    return person === undefined || person.closedAt === null ? undefined : findMovedLocalPerson(services, person)
  }

  app.get<ByGuid>('/people/:guid', { config, schema }, async (request, reply) => {
    const knownPerson = await findByGuid(request.params.guid)
    const move = await findMove(knownPerson)
    if (move !== undefined) return answerMoved(request, reply, move)
    const person = requireOpen(knownPerson)
    if (person.podId !== null) {
      const origin = person.pod && podOrigin(person.pod)
      if (!origin) throw unknownPerson()
      return reply.redirect(`${origin}/people/${person.guidAtPod ?? person.guid}`, 302)
    }
    const { profile } = person
    if (profile === undefined) throw new Error(`Person ${person.guid} has no profile.`)
    const position = readPosition(request)
    const list = await findPublicPostPage(services.db, person.id, position)
    const formerAddresses = await listFormerAddresses(services, person.id)
    const { language } = textsFor(request, reply)
    const key = JSON.stringify(['person', language, person.guid, person.name, profile, formerAddresses, list, position])
    const html = await app.publicPages.cache.get(key, async () =>
      app.publicPages.renderer.personPage(language, {
        person,
        profile,
        formerAddresses,
        posts: await readPublicPosts(services.db, list),
        list,
        position,
      }),
    )
    return reply.type('text/html; charset=utf-8').header('content-security-policy', FOLLOW_FORM_POLICY).send(html)
  })

  // The target of the form on the page above.
  app.get<ByGuid>('/people/:guid/follow', { config, schema }, async (request, reply) => {
    const person = await findPerson(request.params.guid)
    if (person.podId !== null) throw unknownPerson()
    const entered = queryText(request, 'pod') ?? ''
    const visitor = readVisitorAccount(services, entered)
    const send = (followUrl: string | undefined) =>
      reply
        .code(followUrl === undefined ? 422 : 200)
        .type('text/html; charset=utf-8')
        .header('content-security-policy', FOLLOW_FORM_POLICY)
        .send(followPage({ person, followUrl, entered }, { ...services.config, t: textsFor(request, reply) }))
    if (visitor === undefined) return send(undefined)
    const lookUp = lookUpFollowUrl(services, person.address, visitor)
    return app.answerLookUp(request, reply, lookUp, { known: send, unknown: unknownPerson })
  })

  // Read by pods that have just discovered the person.
  app.get<ByGuid>('/people/:guid/stream', { config, schema }, async (request, reply) => {
    const knownPerson = await findByGuid(request.params.guid)
    if ((await findMove(knownPerson)) !== undefined) return []
    const person = requireOpen(knownPerson)
    if (person.podId !== null) throw unknownPerson()
    const posts = await listPublicPosts(services.db, person.id, readMaxTime(queryText(request, 'max_time')))
    return reply.type('application/json; charset=utf-8').send(posts.map(presentStreamItem))
  })

  app.get<{ Params: { name: string } }>('/u/:name', { config, schema }, async (request, reply) => {
    const address = parseAddress(`${request.params.name}@${host}`)
    if (address === undefined) throw unknownPerson()
    const person = await findLocalPerson(services, address)
    if (person !== undefined) return reply.redirect(`${url}/people/${person.guid}`, 302)
    const move = await findMovedLocalPerson(services, { address })
    if (move === undefined) throw unknownPerson()
    return answerMoved(request, reply, move)
  })

  // The addresses of diaspora*: feed readers keep them for years.
  app.get<{ Params: { name: string } }>('/public/:name', { config, schema }, async (request, reply) => {
    const username = request.params.name.replace(/\.atom$/, '')
    const address = parseAddress(`${username}@${host}`)
    const knownPerson = address === undefined ? undefined : await findKnownPerson(services, { address })
    const isFeed = username !== request.params.name
    const move = await findMove(knownPerson)
    if (move !== undefined) return answerMoved(request, reply, move, isFeed ? feedPath(move) : undefined)
    const person = requireOpen(knownPerson)
    const { profile } = person
    if (person.podId !== null || profile === undefined) throw unknownPerson()
    if (!isFeed) return reply.redirect(`${url}/people/${person.guid}`, 302)
    const list = await findPublicPostPage(services.db, person.id)
    const { language } = textsFor(request, reply)
    const key = JSON.stringify(['feed', language, person.guid, person.name, profile, list])
    const feed = await app.publicPages.cache.get(key, async () =>
      app.publicPages.renderer.personFeed(language, {
        person,
        profile,
        posts: await readPublicPosts(services.db, list),
      }),
    )
    return reply.type('application/atom+xml; charset=utf-8').send(feed)
  })

  // Other software links here, so that users of this pod can follow a person (remote follow).
  app.get('/people', { config, schema }, async (request, reply) => {
    return app.answerLookUp(request, reply, lookUpPerson(services, queryText(request, 'q') ?? ''), {
      known: ({ guid }) => reply.redirect(`${url}/people/${guid}`, 302),
      unknown: unknownPerson,
    })
  })
}

/** Leads browsers to the new page of a person who has moved, unless the new pod is blocked. Programs read the API instead. */
function answerMoved(
  request: FastifyRequest,
  reply: FastifyReply,
  { newest }: MovedPerson,
  path = `/people/${newest.guidAtPod ?? newest.guid}`,
): FastifyReply {
  const origin = newest.pod === null ? request.server.services.config.url : podOrigin(newest.pod)
  const wantsJson = /json/.test(request.headers.accept ?? '') && !/html/.test(request.headers.accept ?? '')
  if (wantsJson || newest.isBlocked || origin === undefined) {
    throw pageFault(410, 'error.moved', { reason: 'moved' })
  }
  return reply
    .type('text/plain; charset=utf-8')
    .header('location', `${origin}${path}`)
    .code(301)
    .send(`This person has moved to ${newest.address}.\n`)
}

/** The feed at the new pod, which has the path of diaspora*. */
function feedPath({ newest }: MovedPerson): string {
  return `/public/${newest.address.slice(0, newest.address.indexOf('@'))}.atom`
}

function requireOpen(person: Person | undefined): Person {
  if (person === undefined) throw unknownPerson()
  if (person.closedAt !== null) throw pageFault(410, 'error.closed')
  return person
}

function unknownPerson(): RequestFault {
  return pageFault(404, 'error.person_unknown')
}

/** Seconds since 1970; anything else is ignored. */
function readMaxTime(text: string | undefined): Date | undefined {
  return text !== undefined && /^[0-9]{1,10}$/.test(text) ? new Date(Number(text) * 1_000) : undefined
}
