import type { FastifyPluginAsync } from 'fastify'
import { findMovedLocalPerson } from '../../../domain/people/moved-people.js'
import { findLocalCard, findLocalPerson } from '../../../domain/people/people.js'
import { parseAddress, splitAddress } from '../../../protocol/address.js'
import { writeHcard, writeWebFinger } from '../../../protocol/discovery/discovery-documents.js'
import type { Services } from '../../../services/services.js'
import { presentAvatar } from '../../presenters/people.js'
import { queryText } from '../../schemas/query-text.js'
import { RequestFault } from '../../server/request-faults.js'

const EMPTY_XRD = '<?xml version="1.0" encoding="UTF-8"?>\n<XRD xmlns="http://docs.oasis-open.org/ns/xri/xrd-1.0"/>\n'

/** Documents by which other pods find local people (FEDERATION.md, "Discovery"). */
export const discoveryRoutes: FastifyPluginAsync = async (app) => {
  const { url, oidcIssuer } = app.services.config
  const config = { public: true, quiet: true } as const
  const schema = { hide: true }

  app.get('/.well-known/webfinger', { config, schema }, async (request, reply) => {
    const resource = queryText(request, 'resource')
    if (resource === undefined) throw new RequestFault(400, 'The parameter "resource" must be given exactly once.')
    const address = parseAddress(resource)
    if (address === undefined) throw personNotFound()
    const person = await findLocalPerson(request.services, address)
    const movedPerson = person === undefined ? await findMovedLocalPerson(request.services, { address }) : undefined
    const knownPerson = person ?? movedPerson
    if (knownPerson === undefined) throw personNotFound()
    const successorUrl = movedPerson?.envelope ? `${url}/fetch/account_migration/${movedPerson.guid}` : undefined
    return reply
      .type('application/jrd+json; charset=utf-8')
      .send(JSON.stringify(writeWebFinger({ ...knownPerson, podUrl: `${url}/`, issuer: oidcIssuer, successorUrl })))
  })

  app.get<{ Params: { guid: string } }>('/hcard/users/:guid', { config, schema }, async (request, reply) => {
    const { guid } = request.params
    const card = (await findLocalCard(request.services, guid)) ?? (await cardOfMoved(request.services, guid))
    if (card === undefined) throw personNotFound()
    const { large, medium, small } = presentAvatar(card, { url, uploadsBaseUrl: undefined })
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

/** Old messages of a person who has moved stay verifiable: the card has the key, and nothing about the person. */
async function cardOfMoved(services: Services, guid: string) {
  const movedPerson = await findMovedLocalPerson(services, { guid })
  if (movedPerson === undefined) return undefined
  const { address, publicKey } = movedPerson
  return {
    guid: movedPerson.guid,
    address,
    publicKey,
    name: '',
    firstName: '',
    lastName: '',
    searchable: false,
    ...NO_PICTURE,
  }
}

const NO_PICTURE = { imageUrl: null, imageUrlMedium: null, imageUrlSmall: null }

function personNotFound(): RequestFault {
  return new RequestFault(404, 'There is no such local account.')
}
