import { Person } from '../../../src/persistence/models/person.js'
import { writeWebFinger } from '../../../src/protocol/discovery/discovery-documents.js'
import type { Services } from '../../../src/services/services.js'
import { accept, addListeningPods } from '../../soak/subscribing-pods.js'
import type { FakePerson, FakePods } from '../../support/federation/fake-pods.js'
import type { OutboundMessageRow } from '../../support/federation/outbound-messages.js'
import { openTcpProxy, type TcpProxy } from '../../support/http/tcp-proxy.js'
import type { LocalUser } from '../../support/people/local-users.js'

/** Other pods on local ports, each behind its own proxy. Only the last pod has a follower of the local users. */
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
  const listeners = await addListeningPods(fakePods, pod, hosts, accept)
  const people: FakePerson[] = []
  let personCount = 0

  function newRemotePerson(host = hosts[personCount % (PODS - 1)] ?? ''): FakePerson {
    personCount += 1
    const person = fakePods.person(`p${personCount}@${host}`)
    people.push(person)
    fakePods.script(`${host}/receive/users/${person.guid}`, (request, response) => {
      request.resume().on('end', () => accept(response))
    })
    fakePods.script(`${host}/.well-known/webfinger`, (_request, response, url) => {
      const address = url.searchParams.get('resource')?.replace(/^acct:/, '')
      const found = people.find((person) => person.address === address)
      if (found === undefined) return void response.writeHead(404).end()
      const { guid } = found
      response.setHeader('content-type', 'application/jrd+json')
      response.end(JSON.stringify(writeWebFinger({ address: found.address, guid, podUrl: `http://${host}/` })))
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
      const received = await listeners.acceptedMessages(pod)
      const messages = await pod.db<OutboundMessageRow>('outbound_messages').where({ public: true })
      return messages.flatMap(({ id, record, guid, sentTo }) => {
        const arrivals = received.filter((ids) => ids.includes(id)).length
        return arrivals === sentTo ? [] : [`${record} ${guid} reached ${arrivals} pods, not ${sentTo}`]
      })
    },
    async close() {
      await Promise.all(proxies.map((proxy) => proxy.close()))
    },
  }
}
