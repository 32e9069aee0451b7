import type { KeyObject } from 'node:crypto'
import { RemotePod } from '../../persistence/models/remote-pod.js'
import {
  isReceivable,
  isRelayable,
  type ReceivableEntity,
  type ReceivedEntity,
} from '../../protocol/entities/registry.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { EnvelopeVerification, InnerSignature } from '../../protocol/envelopes/verify-envelope.js'
import type { Services } from '../../services/services.js'
import { parseHomeUrl, parsePodHost } from '../discovery/pod-location.js'
import type {
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  StepResult,
  VerifiedMessage,
  WaitingMessage,
} from './batch.js'
import { type DecryptedMessage, decryptEnvelopes } from './decrypt-envelopes.js'
import { findSigners, type Signer } from './find-signers.js'
import { listParts, recordKeysOf } from './receiving-rules.js'

/** Decrypts private messages, finds the keys of the signers, and verifies all envelopes in threads. */
export async function openEnvelopes(
  services: Services,
  messages: readonly InboundMessage[],
): Promise<StepResult<VerifiedMessage<ReceivableEntity>>> {
  const { decrypted, rejected: undecryptable } = await decryptEnvelopes(services, messages)
  const { verifications, signers } = await verifyWithStoredKeys(services, decrypted)
  const peopleOfBlockedPods = await findPeopleOfBlockedPods(services, verifications.values())
  const ready: VerifiedMessage<ReceivableEntity>[] = []
  const waiting: WaitingMessage[] = []
  const rejected: RejectedMessage[] = [...undecryptable]
  const ignored: IgnoredMessage[] = []
  for (const each of decrypted) {
    const verification = verifications.get(each)
    if (verification === undefined) throw new Error('A message was not verified.')
    const outcome = outcomeOf(each, verification, signers, peopleOfBlockedPods)
    if (outcome.kind === 'ready') ready.push(outcome.message)
    else if (outcome.kind === 'waiting') waiting.push(outcome.message)
    else if (outcome.kind === 'ignored') ignored.push(outcome.message)
    else rejected.push(outcome.message)
  }
  return { ready, waiting, rejected, ignored }
}

/** The end of an envelope in this step. */
type EnvelopeOutcome =
  | { readonly kind: 'ready'; readonly message: VerifiedMessage<ReceivableEntity> }
  | { readonly kind: 'waiting'; readonly message: WaitingMessage }
  | { readonly kind: 'rejected'; readonly message: RejectedMessage }
  | { readonly kind: 'ignored'; readonly message: IgnoredMessage }

type Signers = ReadonlyMap<string, Signer>

function outcomeOf(
  decrypted: DecryptedMessage,
  verification: EnvelopeVerification,
  signers: Signers,
  peopleOfBlockedPods: ReadonlySet<string>,
): EnvelopeOutcome {
  const { inbound, envelope } = decrypted
  switch (verification.state) {
    case 'verified':
      return outcomeOfVerified(decrypted, verification, signers)
    case 'rejected':
      return {
        kind: 'rejected',
        message: { inbound, envelope, fault: verification.fault, reason: verification.reason },
      }
    case 'needs_key':
      return outcomeOfUnverified(decrypted, verification, signers, peopleOfBlockedPods)
  }
}

/** An envelope with valid signatures. */
function outcomeOfVerified(
  { inbound, recipient }: DecryptedMessage,
  { sender, entity, signature }: EnvelopeVerification & { readonly state: 'verified' },
  signers: Signers,
): EnvelopeOutcome {
  const signer = signers.get(sender.toLowerCase())
  if (signer === undefined) throw new Error('An envelope was verified without a key.')
  const author = signers.get(entity.author)
  const firstSigned = firstSignedBy(entity, signature, [signer, author])
  const message = { inbound, sender, signer, author, entity, signature, firstSigned, recipient }
  if (!isStorable(message)) {
    const reason = `entities of type ${entity.type} are not stored`
    return { kind: 'rejected', message: { inbound, message, fault: 'UnknownEntity', reason } }
  }
  if (!isRequested(inbound, entity)) {
    const reason = `the fetched ${entity.type} is not the requested entity`
    return { kind: 'rejected', message: { inbound, message, fault: 'NotFetchable', reason } }
  }
  return { kind: 'ready', message }
}

/**
 * The envelope needs the key of its signer or author. Unknown person: the message waits for a lookup. Known person with an unusable key:
 * rejected. Person on a blocked pod: ignored.
 */
function outcomeOfUnverified(
  { inbound, envelope }: DecryptedMessage,
  { keyOwner, sender }: EnvelopeVerification & { readonly state: 'needs_key' },
  signers: Signers,
  peopleOfBlockedPods: ReadonlySet<string>,
): EnvelopeOutcome {
  if (signers.has(keyOwner)) {
    const reason = `the key of ${keyOwner} cannot be used`
    return { kind: 'rejected', message: { inbound, envelope, fault: 'SenderKeyNotFound', reason } }
  }
  if (peopleOfBlockedPods.has(keyOwner)) {
    return { kind: 'ignored', message: { inbound, envelope, reason: `the pod of ${keyOwner} is blocked` } }
  }
  return {
    kind: 'waiting',
    message: {
      inbound,
      waitsFor: `person:${keyOwner}`,
      fault: 'DiscoveryFailed',
      fetchFrom: keyOwner,
      sender: sender ?? keyOwner,
      isVerified: sender !== undefined,
    },
  }
}

/** Returns the unknown signers and authors on blocked pods; those pods get no request. */
async function findPeopleOfBlockedPods(
  { db }: Pick<Services, 'db'>,
  verifications: Iterable<EnvelopeVerification>,
): Promise<ReadonlySet<string>> {
  const unknown = new Set([...verifications].flatMap((each) => (each.state === 'needs_key' ? [each.keyOwner] : [])))
  const locations = [...unknown].flatMap((address) => {
    const home = parseHomeUrl(address)
    return home === undefined ? [] : [{ address, ...parsePodHost(home) }]
  })
  return new Set(await RemotePod.findBlockedAddresses(db, locations))
}

/**
 * Two people may share a key. So only an entity that names its signer as the author proves that the author has the key
 * (docs/decisions/0027).
 */
function firstSignedBy(
  entity: ReceivedEntity,
  signature: InnerSignature,
  [signer, author]: readonly [Signer, Signer | undefined],
): readonly string[] {
  const isSigned = author !== undefined && (author === signer || (isRelayable(entity) && signature === 'valid'))
  return isSigned && !author.hasSigned ? [author.address] : []
}

/**
 * Verifies the envelopes with the stored keys of the signers that they claim. The first round may reveal an author whom `peekEnvelope`
 * did not find; those envelopes are verified once more, with that key.
 */
async function verifyWithStoredKeys(services: Services, envelopes: readonly DecryptedMessage[]) {
  const verifications = new Map<DecryptedMessage, EnvelopeVerification>()
  const signers = new Map<string, Signer>()
  const searchedAddresses = new Set<string>()
  let unverifiedEnvelopes = envelopes
  let addresses = new Set(envelopes.flatMap(({ envelope }) => claimedSigners(envelope)))
  while (unverifiedEnvelopes.length > 0) {
    for (const signer of await findSigners(services.db, [...addresses])) signers.set(signer.address, signer)
    for (const address of addresses) searchedAddresses.add(address)
    const round = unverifiedEnvelopes.map(({ envelope, inbound }) => ({ envelope, receivedAt: inbound.acceptedAt }))
    const results = await services.crypto.verifyEnvelopes(round, keysOf(signers))
    for (const [index, decrypted] of unverifiedEnvelopes.entries()) {
      const verification = results[index]
      if (verification !== undefined) verifications.set(decrypted, verification)
    }
    const missing = unverifiedEnvelopes.flatMap((each) => {
      const verification = verifications.get(each)
      return verification?.state === 'needs_key' && !searchedAddresses.has(verification.keyOwner)
        ? [{ each, address: verification.keyOwner }]
        : []
    })
    unverifiedEnvelopes = missing.map(({ each }) => each)
    addresses = new Set(missing.map(({ address }) => address))
  }
  return { verifications, signers }
}

function claimedSigners(envelope: string): string[] {
  const { sender, author } = peekEnvelope(envelope)
  return [sender, author].filter((address) => address !== undefined)
}

function keysOf(signers: Signers): ReadonlyMap<string, KeyObject> {
  const keys = new Map<string, KeyObject>()
  for (const { address, key } of signers.values()) if (key !== undefined) keys.set(address, key)
  return keys
}

/** Events are parsed and verified, then rejected as `UnknownEntity`. */
function isStorable(message: VerifiedMessage): message is VerifiedMessage<ReceivableEntity> {
  return isReceivable(message.entity)
}

/** A fetched entity must be the requested one; otherwise a pod could store entities that no local user has subscribed to. */
function isRequested({ fetchRequest }: InboundMessage, entity: ReceivedEntity): boolean {
  if (fetchRequest === undefined) return true
  if (fetchRequest.author !== undefined && fetchRequest.author !== entity.author) return false
  if (!isReceivable(entity)) return false
  return (
    recordKeysOf(entity).includes(`${fetchRequest.type}:${fetchRequest.guid}`) ||
    listParts(entity).some(({ type, guid }) => type === fetchRequest.type && guid === fetchRequest.guid)
  )
}
