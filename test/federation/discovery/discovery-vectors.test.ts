import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import { podOrigin } from '../../../src/federation/discovery/pod-origin.js'
import { Person } from '../../../src/persistence/models/person.js'
import { readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import { readVectors } from '../../protocol/vectors.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

const { discovery } = readVectors(new URL('../../vectors/federation.json', import.meta.url))

/** The documents of the vectors, served by a pod as others would. */
describe('discovering a person of the vectors', () => {
  let pod: FederationPod
  beforeAll(async () => {
    pod = await openFederationPod()
  })
  afterAll(() => pod.close())
  beforeEach(() => pod.empty('people, pods'))

  it.each(discovery)('$name', async ({ id, webfinger_json, hcard_html, expect: expected }) => {
    const [, host = ''] = id.split('@')
    pod.fakePods.script(`${host}/.well-known/webfinger`, (_request, response) => response.end(webfinger_json))
    for (const [, url = ''] of webfinger_json.matchAll(/"href"\s*:\s*"([^"]*hcard[^"]*)"/g)) {
      const { pathname, host: at } = new URL(url)
      pod.fakePods.script(`${at}${pathname}`, (_request, response) => response.end(hcard_html))
    }
    const asking = { ...pod, remotePods: pod.fakePods.remotePods() }

    if (!expected.ok) {
      await expect(discoverPerson(asking, id)).rejects.toMatchObject({ fault: expected.error })
      expect(await pod.rows('people', 'profiles', 'pods')).toEqual([0, 0, 0])
      return
    }
    const person = await discoverPerson(asking, id)
    const { profile } = await Person.query(pod.db).findById(person.id).withGraphFetched('profile').throwIfNotFound()
    expect({
      guid: person.guid,
      url: person.pod && `${podOrigin(person.pod)}/`,
      public_key: person.publicKey,
      first_name: profile?.firstName ?? '',
      last_name: profile?.lastName ?? '',
      image_url: profile?.imageUrl,
      image_url_medium: profile?.imageUrlMedium,
      image_url_small: profile?.imageUrlSmall,
      searchable: profile?.searchable,
    }).toEqual({
      guid: expected['guid'],
      url: expected['url'],
      public_key: readPublicKey(String(expected['public_key']))?.export({ type: 'spki', format: 'pem' }),
      first_name: expected['first_name'],
      last_name: expected['last_name'],
      image_url: expected['image_url'],
      image_url_medium: expected['image_url_medium'],
      image_url_small: expected['image_url_small'],
      searchable: expected['searchable'],
    })
  })
})
