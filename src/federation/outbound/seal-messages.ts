import { LRUCache } from 'lru-cache'
import { decryptPrivateKey } from '../../domain/accounts/private-keys.js'
import { type GroupCommitLimits, groupCommit } from '../../jobs/group-commit.js'
import {
  findSealableMessages,
  type NewEnvelope,
  type SealableMessage,
  storeEnvelopes,
} from '../../persistence/outbound/sealable-messages.js'
import type { Pod, PodCrypto } from '../../pod/pod.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'

/** The envelope of a message, or the error that prevents it. Both unset: the message was retracted. */
export interface SealedMessage {
  readonly envelope?: string
  readonly error?: unknown
}

type SealMessages = (ids: readonly number[]) => Promise<ReadonlyMap<number, SealedMessage>>

/** What the sealer keeps of a pod: never the log or the trace of the job that has opened it. */
type SealerPod = Pick<Pod, 'db' | 'secrets' | 'crypto'>

/** One for each open pod, so that concurrent callers share statements and signatures. */
const sealerOf = stateByOwner<PodCrypto, SealMessages>()

/** Returns the envelopes of messages, or their errors; each is signed once and stored for all pods and all retries. */
export async function sealMessages(
  pod: SealerPod,
  ids: readonly number[],
): Promise<ReadonlyMap<number, SealedMessage>> {
  const { db, secrets, crypto } = pod
  return sealerOf(crypto, () => openSealer({ db, secrets, crypto }))(ids)
}

/** A flood of relays can hold some of the groups with its signatures; other messages start another one. */
const GROUPS: GroupCommitLimits<number> = { atOnce: 4, items: 64 }

/** Envelopes that the pods of a post or of a thread need shortly after each other; a message never gets another envelope. */
const KEPT = { maxSize: 8 * 1024 * 1024, sizeCalculation: envelopeBytes }

/**
 * Seals messages together that are needed at the same time. A message that is being sealed is not sealed by a second caller. Later
 * callers share the text of the envelope: one for each of hundreds of pods would fill the memory.
 */
function openSealer(pod: SealerPod): SealMessages {
  const envelopes = new LRUCache<number, string>(KEPT)
  const running = new Map<number, Promise<SealedMessage>>()
  const sealGroup = groupCommit(GROUPS, (ids: readonly number[]) => sealTogether(pod, ids))

  function start(ids: readonly number[]): void {
    const group = sealGroup(ids)
    for (const id of ids) {
      const one = group
        .then((sealed) => keep(id, sealed.get(id) ?? {}))
        .catch((error: unknown) => ({ error }))
        .finally(() => running.delete(id))
      running.set(id, one)
    }
  }

  function keep(id: number, sealed: SealedMessage): SealedMessage {
    if (sealed.envelope !== undefined) envelopes.set(id, sealed.envelope)
    return sealed
  }

  return async (ids) => {
    const sealedById = new Map(ids.map((id) => [id, envelopes.get(id)] as const))
    const fresh = ids.filter((id) => sealedById.get(id) === undefined && !running.has(id))
    if (fresh.length > 0) start(fresh)
    const sealed = ids.map(async (id): Promise<[number, SealedMessage]> => {
      const envelope = sealedById.get(id)
      return [id, envelope === undefined ? ((await running.get(id)) ?? {}) : { envelope }]
    })
    return new Map(await Promise.all(sealed))
  }
}

async function sealTogether(pod: SealerPod, ids: readonly number[]): Promise<ReadonlyMap<number, SealedMessage>> {
  const messages = await findSealableMessages(pod.db, ids)
  const sealed = new Map<number, SealedMessage>()
  const toSign = messages.flatMap((message) => {
    if (message.envelope === null) return signable(pod, message, sealed)
    sealed.set(message.id, { envelope: message.envelope })
    return []
  })
  for (const { id, envelope } of await signAndStore(pod, toSign)) sealed.set(id, { envelope })
  return sealed
}

type Signable = { readonly id: number } & Parameters<PodCrypto['sealEnvelopes']>[0][number]

/** Reads the key of a message. A message without a usable key does not stop the others. */
function signable(
  { secrets }: Pick<Pod, 'secrets'>,
  message: SealableMessage,
  sealed: Map<number, SealedMessage>,
): readonly Signable[] {
  const { id, entity: payload, address: sender, userId, sealedPrivateKey } = message
  try {
    if (sender === null || sealedPrivateKey === null) throw new Error(`The sender of message ${id} has no private key.`)
    const key = decryptPrivateKey(secrets, userId === null ? 'pod account' : `user ${userId}`, sealedPrivateKey)
    return [{ id, payload, sender, key }]
  } catch (error) {
    sealed.set(id, { error })
    return []
  }
}

async function signAndStore(pod: SealerPod, messages: readonly Signable[]): Promise<readonly NewEnvelope[]> {
  if (messages.length === 0) return []
  const envelopes = await pod.crypto.sealEnvelopes(
    messages.map(({ payload, sender, key }) => ({ payload, sender, key })),
  )
  return storeEnvelopes(
    pod.db,
    messages.flatMap(({ id }, index) => {
      const envelope = envelopes[index]
      return envelope === undefined ? [] : [{ id, envelope }]
    }),
  )
}
