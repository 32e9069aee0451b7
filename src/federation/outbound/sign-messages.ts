import { LRUCache } from 'lru-cache'
import { type GroupCommitLimits, groupCommit } from '../../concurrency/group-commit.js'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { decryptPrivateKey } from '../../domain/accounts/private-keys.js'
import {
  findSignableMessages,
  type NewEnvelope,
  type SignableMessage,
  storeEnvelopes,
} from '../../persistence/outbound/signable-messages.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import type { PodCrypto } from '../../services/pod-crypto.js'
import type { Services } from '../../services/services.js'

/** The envelope of a message, or the error that prevents it. Both unset: the message was retracted. */
export interface SignedMessage {
  readonly envelope?: string
  readonly error?: unknown
}

type SignMessages = (ids: readonly number[]) => Promise<ReadonlyMap<number, SignedMessage>>

/** The services of a pod that the signer keeps: never the log or the trace of the job that has opened it. */
type SigningDependencies = Pick<Services, 'db' | 'crypto' | 'secrets'>

/** One for each set of open services, so that concurrent callers share statements and signatures. */
const messageSignerOf = stateByOwner<PodCrypto, SignMessages>()

/** Returns the envelopes of messages, or their errors; each is signed once and stored for all pods and all retries. */
export async function signMessages(
  services: SigningDependencies,
  ids: readonly number[],
): Promise<ReadonlyMap<number, SignedMessage>> {
  const { db, secrets, crypto } = services
  return messageSignerOf(crypto, () => openMessageSigner({ db, secrets, crypto }))(ids)
}

/** A flood of relays can hold some of the groups with its signatures; other messages start another one. */
const GROUPS: GroupCommitLimits<number> = { maxConcurrent: 4, maxItems: 64 }

/** Envelopes that the pods of a post or of a thread need shortly after each other; a message never gets another envelope. */
const CACHE_OPTIONS = { maxSize: 8 * 1024 * 1024, sizeCalculation: envelopeBytes }

/**
 * Signs messages together that are needed at the same time. A message that is being signed is not signed by a second caller. Later
 * callers share the text of the envelope: one for each of hundreds of pods would fill the memory.
 */
function openMessageSigner(services: SigningDependencies): SignMessages {
  const envelopes = new LRUCache<number, string>(CACHE_OPTIONS)
  const running = new Map<number, Promise<SignedMessage>>()
  const signGroup = groupCommit(GROUPS, (ids: readonly number[]) => signTogether(services, ids))

  function start(ids: readonly number[]): void {
    const group = signGroup(ids)
    for (const id of ids) {
      const signature = group
        .then((signed) => cacheEnvelope(id, signed.get(id) ?? {}))
        .catch((error: unknown) => ({ error }))
        .finally(() => running.delete(id))
      running.set(id, signature)
    }
  }

  function cacheEnvelope(id: number, signed: SignedMessage): SignedMessage {
    if (signed.envelope !== undefined) envelopes.set(id, signed.envelope)
    return signed
  }

  return async (ids) => {
    const cachedEnvelopes = new Map(ids.map((id) => [id, envelopes.get(id)] as const))
    const unsignedIds = ids.filter((id) => cachedEnvelopes.get(id) === undefined && !running.has(id))
    if (unsignedIds.length > 0) start(unsignedIds)
    const signedEntries = ids.map(async (id): Promise<[number, SignedMessage]> => {
      const envelope = cachedEnvelopes.get(id)
      return [id, envelope === undefined ? ((await running.get(id)) ?? {}) : { envelope }]
    })
    return new Map(await Promise.all(signedEntries))
  }
}

async function signTogether(
  services: SigningDependencies,
  ids: readonly number[],
): Promise<ReadonlyMap<number, SignedMessage>> {
  const messages = await findSignableMessages(services.db, ids)
  const signedMessages = new Map<number, SignedMessage>()
  const toSign = messages.flatMap((message) => {
    if (message.envelope === null) return prepareToSign(services, message, signedMessages)
    signedMessages.set(message.id, { envelope: message.envelope })
    return []
  })
  for (const { id, envelope } of await signBatch(services, toSign)) signedMessages.set(id, { envelope })
  return signedMessages
}

type MessageToSign = { readonly id: number } & Parameters<PodCrypto['signEnvelopes']>[0][number]

/** Reads the key of a message. A message without a usable key does not stop the others. */
function prepareToSign(
  { secrets }: Pick<Services, 'secrets'>,
  message: SignableMessage,
  signed: Map<number, SignedMessage>,
): readonly MessageToSign[] {
  const { id, entity: payload, address: sender, userId, sealedPrivateKey } = message
  try {
    if (sender === null || sealedPrivateKey === null) throw new Error(`The sender of message ${id} has no private key.`)
    const key = decryptPrivateKey(secrets, userId === null ? 'pod account' : `user ${userId}`, sealedPrivateKey)
    return [{ id, payload, sender, key }]
  } catch (error) {
    signed.set(id, { error })
    return []
  }
}

async function signBatch(
  services: SigningDependencies,
  messages: readonly MessageToSign[],
): Promise<readonly NewEnvelope[]> {
  if (messages.length === 0) return []
  const envelopes = await services.crypto.signEnvelopes(
    messages.map(({ payload, sender, key }) => ({ payload, sender, key })),
  )
  return storeEnvelopes(
    services.db,
    messages.flatMap(({ id }, index) => {
      const envelope = envelopes[index]
      return envelope === undefined ? [] : [{ id, envelope }]
    }),
  )
}
