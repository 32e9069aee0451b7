import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Services } from '../../src/services/services.js'
import type { FakePods } from '../support/federation/fake-pods.js'
import type { OutboundMessageRow } from '../support/federation/outbound-messages.js'
import { addRemotePod } from '../support/federation/recording-pod.js'

/** Known pods, and the messages that each has accepted. */
export interface ListeningPods {
  readonly ids: readonly number[]
  /** Number of requests to each pod. */
  readonly requestCounts: readonly number[]
  /** Ids of the messages that each pod has accepted, in order of arrival. */
  acceptedMessages(pod: Services): Promise<readonly (readonly number[])[]>
}

/** Responds to a completely received request. Returns whether the message was accepted. */
export type ResponseScript = (response: ServerResponse, index: number) => boolean

export async function addListeningPods(
  fakePods: FakePods,
  pod: Services,
  hosts: readonly string[],
  respond: ResponseScript,
): Promise<ListeningPods> {
  const bodies: string[][] = hosts.map(() => [])
  const requestCounts = hosts.map(() => 0)
  const ids: number[] = []
  for (const [index, host] of hosts.entries()) {
    ids.push((await addRemotePod(pod, host)).id)
    fakePods.script(`${host}/receive/public`, async (request: IncomingMessage, response: ServerResponse) => {
      requestCounts[index] = (requestCounts[index] ?? 0) + 1
      const body = await text(request).catch(() => undefined) // the sending worker may be killed in the meantime
      if (body !== undefined && respond(response, index)) bodies[index]?.push(body)
    })
  }
  return {
    ids,
    requestCounts,
    async acceptedMessages({ db }) {
      const messages = await db<OutboundMessageRow>('outbound_messages').select('id', 'envelope')
      const byEnvelope = new Map(messages.map(({ id, envelope }) => [envelope, id]))
      return bodies.map((each) => each.map((body) => byEnvelope.get(body) ?? Number.NaN))
    },
  }
}

export function accept(response: ServerResponse): boolean {
  response.writeHead(202).end()
  return true
}

/** Makes all delayed deliveries due now. */
export async function makeDeliveriesDue({ db }: Services): Promise<void> {
  await db.raw(`update pods set next_try_at = null where next_try_at is not null`)
  await db.raw(`update deliveries set due_at = created_at where state = 'waiting' and due_at > now()`)
}
