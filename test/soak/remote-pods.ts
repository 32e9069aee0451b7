import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Person } from '../../src/persistence/models/person.js'
import { writeWebFinger } from '../../src/protocol/discovery/discovery-documents.js'
import type { Services } from '../../src/services/services.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import type { OutboundMessageRow } from '../support/federation/outbound-messages.js'
import { openTcpProxy } from '../support/http/tcp-proxy.js'
import type { UserWithToken } from './mixed-load-pod.js'
import { accept, addListeningPods } from './subscribing-pods.js'

/** Other pods on local ports: most are healthy, some are slow, some do not respond until the end of an outage. */
export interface RemotePodsUnderLoad extends AsyncDisposable {
  readonly fakePods: FakePods
  /** Authors of public posts; the pod knows half of them. */
  readonly authors: readonly FakePerson[]
  /** One person on each pod, with mutual sharing with all local users. */
  readonly friends: readonly FakePerson[]
  endOutage(): void
  /** Missing and repeated deliveries, as sentences. */
  failures(): Promise<readonly string[]>
}

type Condition = 'healthy' | 'slow' | 'unreachable'

const CONDITIONS: readonly Condition[] = [
  ...(['healthy', 'healthy', 'healthy', 'healthy'] as const),
  ...(['slow', 'slow', 'unreachable', 'unreachable'] as const),
]
const UNKNOWN_PEOPLE = 12
const SLOW_MS = 150

export async function startRemotePods(
  pod: Services,
  localUsers: readonly UserWithToken[],
): Promise<RemotePodsUnderLoad> {
  const fakePods = await startFakePods()
  const proxies = await Promise.all(CONDITIONS.map(() => openTcpProxy(fakePods.server.port)))
  const hosts = proxies.map(({ port }) => `localhost:${port}`)
  const people: FakePerson[] = []
  const encryptedEnvelopes: string[][] = hosts.map(() => [])
  let isOutageOver = false

  function respond(response: ServerResponse, index: number): boolean {
    if (CONDITIONS[index] === 'unreachable' && !isOutageOver) {
      response.destroy()
      return false
    }
    if (CONDITIONS[index] === 'slow') setTimeout(() => accept(response), SLOW_MS)
    else accept(response)
    return true
  }
  const listeners = await addListeningPods(fakePods, pod, hosts, respond)
  for (const host of hosts)
    fakePods.script(`${host}/.well-known/webfinger`, (_request, response, url) => {
      const address = url.searchParams.get('resource')?.replace(/^acct:/, '')
      const found = people.find((person) => person.address === address)
      if (found === undefined) return void response.writeHead(404).end()
      response.setHeader('content-type', 'application/jrd+json')
      response.end(JSON.stringify(writeWebFinger({ ...found, podUrl: `http://${host}/` })))
    })

  function addPerson(name: string, index: number): FakePerson {
    const person = fakePods.person(`${name}@${hosts[index]}`)
    people.push(person)
    fakePods.script(`${hosts[index]}/receive/users/${person.guid}`, async (request, response) => {
      const body = await text(request)
      if (respond(response, index)) encryptedEnvelopes[index]?.push(body)
    })
    return person
  }

  async function register({ guid, address, publicKey }: FakePerson): Promise<number> {
    const podId = listeners.ids[hosts.indexOf(address.split('@')[1] ?? '')] ?? Number.NaN
    const { id } = await pod.db.transaction((transaction) =>
      Person.insertWithProfile(transaction, { guid, address, publicKey, podId }),
    )
    return id
  }

  const healthyPods = CONDITIONS.filter((condition) => condition === 'healthy').length
  const unknownPeople = Array.from({ length: UNKNOWN_PEOPLE }, (_, index) =>
    addPerson(`author${index}`, index % healthyPods),
  )
  for (const known of unknownPeople.slice(UNKNOWN_PEOPLE / 2)) await register(known)
  const friends = hosts.map((_, index) => addPerson(`friend${index}`, index))
  for (const friend of friends) {
    const personId = await register(friend)
    const rows = localUsers.map(({ userId }) => ({ userId, personId, sharing: true, receiving: true }))
    await pod.db('contacts').insert(rows)
  }

  async function findDeliveryFailures(): Promise<readonly string[]> {
    const received = await listeners.acceptedMessages(pod)
    const messages = await pod
      .db<OutboundMessageRow>('outbound_messages')
      .select('id', 'record', 'guid', 'sentTo', 'public')
    const lost = messages
      .filter((message) => message.public)
      .flatMap(({ id, record, guid, sentTo }) => {
        const arrivals = received.filter((ids) => ids.includes(id)).length
        return arrivals === sentTo ? [] : [`${record} ${guid} reached ${arrivals} pods, not ${sentTo}`]
      })
    const repeated = [...received.map((ids) => ids.map(String)), ...encryptedEnvelopes].filter(
      (each) => new Set(each).size < each.length,
    ).length
    const sent = messages.filter((message) => !message.public).reduce((sum, { sentTo }) => sum + sentTo, 0)
    const arrivedCount = encryptedEnvelopes.reduce((sum, each) => sum + new Set(each).size, 0)
    return [
      ...lost,
      ...(repeated > 0 ? [`${repeated} pods have received a message twice`] : []),
      ...(sent === arrivedCount ? [] : [`${arrivedCount} private messages have arrived, and ${sent} were written`]),
    ]
  }

  return {
    fakePods,
    authors: unknownPeople,
    friends,
    endOutage() {
      isOutageOver = true
    },
    failures: findDeliveryFailures,
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await fakePods.close()
    },
  }
}
