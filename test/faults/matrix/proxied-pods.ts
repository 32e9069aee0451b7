import { Person } from '../../../src/persistence/models/person.js'
import { writeWebFinger } from '../../../src/protocol/discovery/discovery-documents.js'
import type { Services } from '../../../src/services/services.js'
import { listeningPods, takes } from '../../soak/subscribing-pods.js'
import type { FakePerson, FakePods } from '../../support/federation/fake-pods.js'
import type { OutboundMessageRow } from '../../support/federation/outbound-messages.js'
import { openTcpProxy, type TcpProxy } from '../../support/http/tcp-proxy.js'
import type { LocalUser } from '../../support/people/local-users.js'

/** Other pods on local ports, each behind its own proxy; only the last one has a follower of every local user. */
export interface ProxiedPods {
  readonly hosts: readonly string[]
  readonly ids: readonly number[]
  readonly proxies: readonly TcpProxy[]
  /** A person on one of them, unknown to the pod under test. */
  newRemotePerson(host?: string): FakePerson
  /** A person on one of them, known to the pod under test. */
  addKnownPerson(): Promise<FakePerson>
  /** Public messages that did not reach every recipient, as sentences. */
  missing(): Promise<readonly string[]>
  close(): Promise<void>
}

const PODS = 5

export async function startProxiedPods(
  pod: Services,
  fakePods: FakePods,
  followed: readonly LocalUser[],
): Promise<ProxiedPods> {
  const proxies = await Promise.all(Array.from({ length: PODS }, () => openTcpProxy(fakePods.server.port)))
  const hosts = proxies.map(({ port }) => `localhost:${port}`)
  const listeners = await listeningPods(fakePods, pod, hosts, takes)
  const people: FakePerson[] = []
  let made = 0

  function newRemotePerson(host = hosts[made % (PODS - 1)] ?? ''): FakePerson {
    made += 1
    const person = fakePods.person(`p${made}@${host}`)
    people.push(person)
    fakePods.script(`${host}/receive/users/${person.guid}`, (request, response) => {
      request.resume().on('end', () => takes(response))
    })
    fakePods.script(`${host}/.well-known/webfinger`, (_request, response, url) => {
      const asked = url.searchParams.get('resource')?.replace(/^acct:/, '')
      const found = people.find(({ address }) => address === asked)
      if (found === undefined) return void response.writeHead(404).end()
      const { address, guid } = found
      response.setHeader('content-type', 'application/jrd+json')
      response.end(JSON.stringify(writeWebFinger({ address, guid, podUrl: `http://${host}/` })))
    })
    return person
  }

  async function storePerson({ guid, address, publicKey }: FakePerson): Promise<number> {
    const podId = listeners.ids[hosts.indexOf(address.split('@')[1] ?? '')] ?? Number.NaN
    const { id } = await pod.db.transaction((transaction) =>
      Person.insertWithProfile(transaction, { guid, address, publicKey, podId }),
    )
    return id
  }

  const personId = await storePerson(newRemotePerson(hosts.at(-1)))
  await pod.db('contacts').insert(followed.map(({ userId }) => ({ userId, personId, sharing: true, receiving: false })))
  return {
    hosts,
    ids: listeners.ids,
    proxies,
    newRemotePerson,
    async addKnownPerson() {
      const person = newRemotePerson()
      await storePerson(person)
      return person
    },
    async missing() {
      const taken = await listeners.taken(pod)
      const messages = await pod.db<OutboundMessageRow>('outbound_messages').where({ public: true })
      return messages.flatMap(({ id, record, guid, sentTo }) => {
        const arrived = taken.filter((ids) => ids.includes(id)).length
        return arrived === sentTo ? [] : [`${record} ${guid} has come to ${arrived} pods, not to ${sentTo}`]
      })
    },
    async close() {
      await Promise.all(proxies.map((proxy) => proxy.close()))
    },
  }
}
