import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { SEARCH_LIMITS } from '../../../domain/people/limits.js'
import { searchPeople } from '../../../domain/people/search-people.js'
import { findTags } from '../../../domain/posts/tags.js'
import { discoverSearchedPerson } from '../../../federation/discovery/discover-searched-person.js'
import { lookUpPerson } from '../../../federation/discovery/lookups.js'
import type { ContactFilter } from '../../../persistence/people/people-search.js'
import { readPastedLink } from '../../../protocol/pasted-links.js'
import type { Services } from '../../../services/services.js'
import { requireScopes } from '../../api/authentication.js'
import { indexPaging, linkIndexPages, readIndexPage } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { lookUpForViewer } from '../../limits/remote-search.js'
import { presentPersonSummary } from '../../presenters/people.js'
import { PersonSummary } from '../../schemas/people.js'
import { queryTexts } from '../../schemas/query-text.js'
import { refTo } from '../../schemas/references.js'
import { RequestFault } from '../../server/request-faults.js'

const tags = ['Search']

const peopleQuery = Type.Object({
  name_or_handle: Type.Optional(
    Type.String({
      description:
        'Words of the name in this order, or the start of the address; at least two characters. A complete address that this pod does not know is looked up at its pod. Also a link: `https://pod.example/people/GUID`, `https://pod.example/u/alice`, `diaspora://alice@pod.example`.',
    }),
  ),
  query: Type.Optional(Type.String({ description: 'The same as `name_or_handle`.' })),
  tag: Type.Optional(Type.String({ description: 'A tag of the profile, with or without `#`.' })),
  filter: Type.Optional(
    Type.Unsafe<string | string[]>({
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
      description:
        'One or more of `contacts`, `contacts:receiving` (you share with them), `contacts:sharing` (they share with you) and `aspect:1,2` (they are in one of these aspects), as `filter` or `filter[]`. All of them must hold. Needs the scope `contacts:read`.',
    }),
  ),
  ...indexPaging,
})

/** Searches people and tags. Posts: search-posts.ts. */
export const searchRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/search/users',
    {
      attachValidation: true,
      schema: {
        operationId: 'searchPeople',
        tags,
        summary: 'Search for people',
        description:
          'By exactly one of `name_or_handle` and `tag`, ordered by name. People who are hidden from search are found only among your contacts, by name, with the scope `contacts:read`.',
        querystring: peopleQuery,
        response: { 200: Type.Array(refTo(PersonSummary), { description: 'The people found.' }) },
      },
      config: {
        scopes: ['public:read'],
        refusals: { field_missing: 422, aspect_not_found: { status: 422, field: 'filter' } },
      },
    },
    async (request, reply) => {
      const filterTexts = queryTexts(request, 'filter')
      if (filterTexts.length > 0) requireScopes(request, 'contacts:read')
      const page = readIndexPage(request)
      const criterion = readCriterion(request.query)
      const filters = readFilters(filterTexts)
      // A person unknown to this pod matches no filter, and only the first page waits for other pods.
      const maySearchPods = filters.length === 0 && page.offset === 0
      const searchCriterion =
        'nameOrAddress' in criterion ? await resolveLink(request, criterion.nameOrAddress, maySearchPods) : criterion
      if (searchCriterion === undefined) return []
      if ('nameOrAddress' in searchCriterion && maySearchPods) {
        const { nameOrAddress } = searchCriterion
        await app.remoteSearch.runIfFree(request.viewer.userId, () =>
          discoverSearchedPerson(request.services, nameOrAddress),
        )
      }
      const search = (services: Pick<Services, 'db'>) =>
        searchPeople(services, request.viewer, { ...searchCriterion, filters }, page)
      // The person of a complete address may have been stored just now, so the replica may not have it.
      const isAddress = 'nameOrAddress' in searchCriterion && searchCriterion.nameOrAddress.includes('@')
      const people = isAddress ? await search(request.services) : await readList(request, search)
      linkIndexPages(reply, page, people)
      return people.items.map((person) => presentPersonSummary(person, app.services.config))
    },
  )

  app.get(
    '/search/tags',
    {
      schema: {
        operationId: 'searchTags',
        tags,
        summary: 'Search for tags',
        description:
          'Tags that start with the given text, sorted, without `#`: tags of public posts and comments, and tags that you follow or use.',
        querystring: Type.Object({ query: Type.String({ description: 'With or without `#`.' }), ...indexPaging }),
        response: { 200: Type.Array(Type.String(), { description: 'The tags found.' }) },
      },
      config: { scopes: ['public:read'], refusals: { tag_invalid: { status: 422, field: 'query' } } },
    },
    async (request, reply) => {
      const page = readIndexPage(request)
      const foundPeople = await readList(request, (services) =>
        findTags(services, request.viewer, request.query.query, page),
      )
      linkIndexPages(reply, page, foundPeople)
      return [...foundPeople.items]
    },
  )
}

/** Replaces the link of a person by the address. Other texts stay as they are. Undefined: a link that leads to no person. */
async function resolveLink(
  request: FastifyRequest,
  nameOrAddress: string,
  mayRunJob: boolean,
): Promise<{ readonly nameOrAddress: string } | undefined> {
  if (!/^(https?|(web\+)?diaspora):\/\//i.test(nameOrAddress.trim())) return { nameOrAddress }
  const pastedLink = readPastedLink(nameOrAddress)
  if (pastedLink?.to === 'person') return { nameOrAddress: pastedLink.address }
  if (pastedLink?.to !== 'profile') return undefined
  const person = await lookUpForViewer(request, lookUpPerson(request.server.services, nameOrAddress), mayRunJob)
  return person && { nameOrAddress: person.address }
}

function readCriterion({
  name_or_handle,
  query,
  tag,
}: {
  readonly name_or_handle?: string
  readonly query?: string
  readonly tag?: string
}) {
  const nameOrAddress = name_or_handle ?? query
  const criteria = [name_or_handle, query, tag].filter((text) => text !== undefined)
  if (criteria.length !== 1) {
    throw new RequestFault(422, 'Exactly one of "name_or_handle", "query" and "tag" must be given.', {
      reason: criteria.length === 0 ? 'field_missing' : 'field_invalid',
      field: 'name_or_handle',
    })
  }
  return nameOrAddress === undefined ? { tag: tag ?? '' } : { nameOrAddress }
}

const contactFilters: Readonly<Record<string, ContactFilter>> = {
  contacts: 'any',
  'contacts:receiving': 'receiving',
  'contacts:sharing': 'sharing',
}

function readFilters(texts: readonly string[]): readonly ContactFilter[] {
  const different = [...new Set(texts)]
  if (different.length <= SEARCH_LIMITS.filters) return different.map(readFilter)
  throw new RequestFault(422, `There may be ${SEARCH_LIMITS.filters} different filters at most.`, { field: 'filter' })
}

function readFilter(text: string): ContactFilter {
  const namedFilter = Object.hasOwn(contactFilters, text) ? contactFilters[text] : undefined
  if (namedFilter !== undefined) return namedFilter
  const [, ids] = /^aspect:([0-9]{1,15}(?:,[0-9]{1,15})*)$/.exec(text) ?? []
  if (ids !== undefined) return { aspectIds: ids.split(',').map(Number) }
  throw new RequestFault(422, '"filter" has an unknown value.', { field: 'filter' })
}
