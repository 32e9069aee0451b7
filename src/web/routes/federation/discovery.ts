import type { FastifyPluginAsync } from 'fastify'
import { findLocalCard, findLocalPerson } from '../../../domain/people/people.js'
import { addressOf, splitAddress } from '../../../protocol/address.js'
import { writeHcard, writeWebFinger } from '../../../protocol/discovery/discovery-documents.js'
import { presentAvatar } from '../../presenters/people.js'
import { queryText } from '../../schemas/query-text.js'
import { RequestFault } from '../../server/request-faults.js'

const EMPTY_XRD = '<?xml version="1.0" encoding="UTF-8"?>\n<XRD xmlns="http://docs.oasis-open.org/ns/xri/xrd-1.0"/>\n'

/** Documents by which other pods find local people (FEDERATION.md, "Discovery"). */
export const discoveryRoutes: FastifyPluginAsync = async (app) => {
  const { url } = app.pod.config
  const config = { public: true, quiet: true } as const
  const schema = { hide: true }

  app.get('/.well-known/webfinger', { config, schema }, async (request, reply) => {
    const resource = queryText(request, 'resource')
    if (resource === undefined) throw new RequestFault(400, 'The parameter "resource" must be given exactly once.')
    const address = addressOf(resource)
    const person = address === undefined ? undefined : await findLocalPerson(app.pod, address)
    if (person === undefined) throw personNotFound()
    return reply
      .type('application/jrd+json; charset=utf-8')
      .send(JSON.stringify(writeWebFinger({ ...person, podUrl: `${url}/` })))
  })

  app.get<{ Params: { guid: string } }>('/hcard/users/:guid', { config, schema }, async (request, reply) => {
    const card = await findLocalCard(app.pod, request.params.guid)
    if (card === undefined) throw personNotFound()
    const { large, medium, small } = presentAvatar(card, url)
    const hcard = writeHcard({
      guid: card.guid,
      publicKey: card.publicKey,
      nickname: splitAddress(card.address)?.name ?? '',
      fullName: card.name,
      firstName: card.firstName ?? '',
      lastName: card.lastName ?? '',
      searchable: card.searchable,
      imageUrl: large,
      imageUrlMedium: medium,
      imageUrlSmall: small,
    })
    return reply.type('text/html; charset=utf-8').send(hcard)
  })

  // Older pods look for a WebFinger template here first, and continue without one.
  app.get('/.well-known/host-meta', { config, schema }, async (_request, reply) =>
    reply.type('application/xrd+xml; charset=utf-8').send(EMPTY_XRD),
  )
}

function personNotFound(): RequestFault {
  return new RequestFault(404, 'There is no such local account.')
}
