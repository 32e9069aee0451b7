import type { FastifyPluginAsync } from 'fastify'
import { findAnybody, findLocalPerson } from '../../../domain/people/people.js'
import { publicPostsOf, publicPostVersions } from '../../../domain/posts/public-posts.js'
import { lookUpPerson } from '../../../federation/discovery/look-up.js'
import { podOrigin } from '../../../federation/discovery/pod-origin.js'
import type { Person } from '../../../persistence/models/person.js'
import { addressOf } from '../../../protocol/address.js'
import { isGuid } from '../../../protocol/values.js'
import { presentStreamItem } from '../../presenters/posts.js'
import { queryText } from '../../schemas/query-text.js'
import { RequestFault } from '../../server/request-faults.js'

interface ByGuid {
  readonly Params: { readonly guid: string }
}

/** The people who live here, for everybody; others are shown where they live. */
export const personPageRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const { url, host } = pod.config
  const config = { public: true } as const
  const schema = { hide: true }

  async function findPerson(guid: string): Promise<Person> {
    const person = isGuid(guid) ? await findAnybody(pod, { guid }) : undefined
    if (person === undefined) throw nobody()
    if (person.closedAt !== null) throw new RequestFault(410, 'This person has left the network.')
    return person
  }

  app.get<ByGuid>('/people/:guid', { config, schema }, async (request, reply) => {
    const person = await findPerson(request.params.guid)
    if (person.podId !== null) {
      const origin = person.pod && podOrigin(person.pod)
      if (!origin) throw nobody()
      return reply.redirect(`${origin}/people/${person.guidAtPod ?? person.guid}`, 302)
    }
    const { profile } = person
    if (profile === undefined) throw new Error(`Person ${person.guid} has no profile.`)
    const versions = await publicPostVersions(pod, person.id)
    const key = JSON.stringify(['person', person.guid, person.name, profile, versions])
    const html = await app.publicPages.cache.get(key, async () =>
      app.publicPages.renderer.personPage({ person, profile, posts: await publicPostsOf(pod, person.id) }),
    )
    return reply.type('text/html; charset=utf-8').send(html)
  })

  // Read by pods that have just met the person.
  app.get<ByGuid>('/people/:guid/stream', { config, schema }, async (request, reply) => {
    const person = await findPerson(request.params.guid)
    if (person.podId !== null) throw nobody()
    const posts = await publicPostsOf(pod, person.id, readMaxTime(queryText(request, 'max_time')))
    return reply.type('application/json; charset=utf-8').send(posts.map(presentStreamItem))
  })

  app.get<{ Params: { name: string } }>('/u/:name', { config, schema }, async (request, reply) => {
    const address = addressOf(`${request.params.name}@${host}`)
    const person = address === undefined ? undefined : await findLocalPerson(pod, address)
    if (person === undefined) throw nobody()
    return reply.redirect(`${url}/people/${person.guid}`, 302)
  })

  // Where other software sends somebody who wants to follow a person from here.
  app.get('/people', { config, schema }, async (request, reply) => {
    return app.answerLookUp(request, reply, lookUpPerson(pod, queryText(request, 'q') ?? ''), {
      known: ({ guid }) => reply.redirect(`${url}/people/${guid}`, 302),
      unknown: nobody,
    })
  })
}

function nobody(): RequestFault {
  return new RequestFault(404, 'Nobody of this name is known here.')
}

/** Seconds since 1970; what is no such time is ignored. */
function readMaxTime(text: string | undefined): Date | undefined {
  return text !== undefined && /^[0-9]{1,10}$/.test(text) ? new Date(Number(text) * 1_000) : undefined
}
