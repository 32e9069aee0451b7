import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Services } from '../../src/services/services.js'
import type { FakePods } from '../support/federation/fake-pods.js'
import type { OutboundMessageRow } from '../support/federation/outbound-messages.js'
import { addRemotePod } from '../support/federation/recording-pod.js'

/** Many known pods, and the messages that each has accepted. */
export interface ListeningPods {
  readonly ids: readonly number[]
  /** Number of requests to each pod. */
  readonly asked: readonly number[]
  /** The messages that each pod has answered with 202, in order of arrival. */
  taken(pod: Services): Promise<readonly (readonly number[])[]>
}

/** Answers a completely received request. True: the message was accepted. */
export type Answering = (response: ServerResponse, index: number) => boolean

export async function listeningPods(
  fakePods: FakePods,
  pod: Services,
  hosts: readonly string[],
  answer: Answering,
): Promise<ListeningPods> {
  const bodies: string[][] = hosts.map(() => [])
  const asked = hosts.map(() => 0)
  const ids: number[] = []
  for (const [index, host] of hosts.entries()) {
    ids.push((await addRemotePod(pod, host)).id)
    fakePods.script(`${host}/receive/public`, async (request: IncomingMessage, response: ServerResponse) => {
      asked[index] = (asked[index] ?? 0) + 1
      const body = await text(request).catch(() => undefined) // the sending worker may be killed in the meantime
      if (body !== undefined && answer(response, index)) bodies[index]?.push(body)
    })
  }
  return {
    ids,
    asked,
    async taken({ db }) {
      const messages = await db<OutboundMessageRow>('outbound_messages').select('id', 'envelope')
      const byEnvelope = new Map(messages.map(({ id, envelope }) => [envelope, id]))
      return bodies.map((each) => each.map((body) => byEnvelope.get(body) ?? Number.NaN))
    },
  }
}

export function takes(response: ServerResponse): boolean {
  response.writeHead(202).end()
  return true
}

/** Skips the waiting time: delayed attempts are due now. */
export async function letTimePass({ db }: Services): Promise<void> {
  await db.raw(`update pods set next_try_at = null where next_try_at is not null`)
  await db.raw(`update deliveries set due_at = created_at where state = 'waiting' and due_at > now()`)
}
