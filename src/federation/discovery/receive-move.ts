import { insertFetchedMove } from '../../jobs/inbound/accepted-messages.js'
import { findUnprovenEnvelope } from '../../persistence/archives/account-moves.js'
import type { Person } from '../../persistence/models/person.js'
import { peekEntityName, peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import type { Services } from '../../services/services.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { DISCOVERY_LIMITS } from './limits.js'
import { isSamePodHost, parsePodHost } from './pod-location.js'

export interface SuccessorLink {
  readonly address: string
  readonly podUrl: URL
  /** Where WebFinger says that the signed message of the move is. */
  readonly successorUrl: string
  /** The end of the lookup, by `performance.now`. */
  readonly until: number
  /** Moves that were followed to this person. */
  readonly movesFollowed: number
}

/**
 * A person who was looked up has moved: fetches the message of the move from their old pod, and receives it like any message. So a pod
 * that has not received the move finds the new account. Without a usable message the lookup succeeds all the same. The new account is
 * looked up too, and may have moved as well: a pod could invent such a chain without an end.
 */
export async function receiveMove(
  services: Pick<Services, 'db' | 'remotePods' | 'now' | 'log'>,
  { address, podUrl, successorUrl, until, movesFollowed }: SuccessorLink,
): Promise<void> {
  if (movesFollowed >= DISCOVERY_LIMITS.movesFollowed) return
  if (!isSamePodHost(parsePodHost(podUrl), parsePodHost(new URL(successorUrl)))) return
  const envelope = await requestMove(services, successorUrl, until)
  if (envelope === undefined || !isMoveOf(envelope, address)) {
    services.log.info({ address }, 'message of a move not fetched')
    return
  }
  const storableEnvelope = envelope.replaceAll('\0', '\ufffd') // as in the inbound endpoint
  await insertFetchedMove(services.db, storableEnvelope, {
    fetchedAt: services.now(),
    movesFollowed: movesFollowed + 1,
  })
}

/**
 * The old account of a move to this pod has become known after the move. If its key has signed the stored message of the move, that
 * message is received like any other, and moves what refers to the account. Returns whether the key has signed it.
 */
export async function receiveUnprovenMove(
  services: Pick<Services, 'db' | 'crypto' | 'now'>,
  { address, publicKey }: Pick<Person, 'address' | 'publicKey'>,
): Promise<boolean> {
  const envelope = await findUnprovenEnvelope(services.db, address)
  const key = readPublicKey(publicKey)
  if (envelope === undefined || key === undefined) return false
  const fetchedAt = services.now()
  const [opened] = await services.crypto.verifyEnvelopes(
    [{ envelope, receivedAt: fetchedAt }],
    new Map([[address, key]]),
  )
  // The key of the new account is missing, for the inner signature; the sender is verified all the same.
  if (opened === undefined || opened.state === 'rejected' || opened.sender !== address) return false
  await insertFetchedMove(services.db, envelope, { fetchedAt, movesFollowed: DISCOVERY_LIMITS.movesFollowed })
  return true
}

/** Any other entity could wait for entities of other pods, and begin another chain. */
function isMoveOf(envelope: string, address: string): boolean {
  return peekEnvelope(envelope).sender === address && peekEntityName(envelope) === 'account_migration'
}

async function requestMove(
  { remotePods }: Pick<Services, 'remotePods'>,
  url: string,
  until: number,
): Promise<string | undefined> {
  try {
    const { status, body } = await remotePods.get(url, {
      accept: 'application/magic-envelope+xml',
      maxBytes: REMOTE_LIMITS.discoveryBytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
      deadline: Math.max(1, until - performance.now()),
    })
    return status >= 200 && status <= 299 ? body.toString() : undefined
  } catch (error) {
    if (error instanceof RemotePodError) return undefined
    throw error
  }
}
