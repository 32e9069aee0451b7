import type { Knex } from 'knex'
import { newGuid } from '../../domain/new-guid.js'
import { lockEntityKeys } from '../../jobs/waiting/lock-entity-keys.js'
import { deferMessages } from '../../jobs/waiting/store-waiting-messages.js'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { inRequestTransaction, retryAfterLockTimeout } from '../../persistence/database/transactions.js'
import { showConversationsTo } from '../../persistence/inbound/insert-conversations.js'
import { Person, type ProfileFields } from '../../persistence/models/person.js'
import { RemotePod } from '../../persistence/models/remote-pod.js'
import { restrictNewPerson } from '../../persistence/moderation/pod-rule-restrictions.js'
import { restoreOwnGuids } from '../../persistence/people/person-guids.js'
import type { Hcard } from '../../protocol/discovery/discovery-documents.js'
import { ProtocolError } from '../../protocol/errors.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import type { Services } from '../../services/services.js'
import { parsePodHost } from './pod-location.js'
import { profileImageUrl } from './profile-image.js'

/** The result of a discovery. */
export interface DiscoveredPerson {
  readonly address: string
  readonly podUrl: URL
  readonly hcard: Hcard
  /** When the discovery started. */
  readonly began: Date
}

/**
 * Stores a remote person. Guid, key and pod are fixed at the first discovery; later ones change only the profile. Two people may
 * claim one guid, because discovery proves nothing. The second one gets a guid made by this pod, until a signature decides
 * (`recordFirstSignatures`). Throws `DiscoveryFailed` if a local person has the guid.
 */
export async function savePerson(services: Services, discovered: DiscoveredPerson): Promise<Person> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await retryAfterLockTimeout(() =>
        inRequestTransaction(services, (transaction) => save(services, transaction, discovered)),
      )
    } catch (error) {
      // A concurrent transaction has given the guid to another person; the next attempt finds that person.
      if (attempt === MAX_ATTEMPTS || !isUniqueViolation(error, 'people_guid_key')) throw error
    }
  }
}

const MAX_ATTEMPTS = 3

async function save(services: Services, transaction: Knex.Transaction, discovered: DiscoveredPerson): Promise<Person> {
  const { address, podUrl, hcard, began } = discovered
  const person = `person:${address}` as const
  await lockEntityKeys(transaction, [person])
  const storedPerson = await Person.byAddress(transaction, address)
  if (storedPerson === undefined) {
    const guids = await findFreeGuid(transaction, discovered)
    const publicKey = readKey(discovered)
    const { id: podId } = await RemotePod.findOrInsert(transaction, {
      ...parsePodHost(podUrl),
      ssl: podUrl.protocol === 'https:',
    })
    const identity = { ...guids, address, publicKey, podId, refreshedAt: began }
    const { id } = await Person.insertWithProfile(transaction, identity, profileOf(hcard, podUrl))
    await restrictNewPerson(transaction, id)
    await showConversationsTo(transaction, { id, address })
    await deferMessages(services, transaction, [], [person])
  } else {
    await Person.refreshProfile(transaction, storedPerson.id, profileOf(hcard, podUrl), began)
    if (storedPerson.guidAtPod !== null) await restoreOwnGuids(transaction, [storedPerson.id])
  }
  return Person.byAddress(transaction, address).throwIfNotFound()
}

async function findFreeGuid(
  transaction: Knex.Transaction,
  { address, hcard: { guid } }: DiscoveredPerson,
): Promise<{ readonly guid: string; readonly guidAtPod?: string }> {
  const holder = await Person.query(transaction).findOne({ guid }).select('address', 'podId')
  if (holder === undefined) return { guid }
  if (holder.podId === null) {
    throw new ProtocolError('DiscoveryFailed', `the local person ${holder.address} has the guid of ${address}`)
  }
  return { guid: newGuid(), guidAtPod: guid }
}

function readKey({ address, hcard }: DiscoveredPerson): string {
  const key = readPublicKey(hcard.publicKey)
  if (key === undefined) throw new ProtocolError('DiscoveryFailed', `the public key of ${address} is unusable`)
  return key.export({ type: 'spki', format: 'pem' }).toString()
}

function profileOf(hcard: Hcard, podUrl: URL): ProfileFields {
  return {
    firstName: hcard.firstName || null,
    lastName: hcard.lastName || null,
    imageUrl: profileImageUrl(hcard.imageUrl, podUrl.href),
    imageUrlMedium: profileImageUrl(hcard.imageUrlMedium, podUrl.href),
    imageUrlSmall: profileImageUrl(hcard.imageUrlSmall, podUrl.href),
    searchable: hcard.searchable,
  }
}
