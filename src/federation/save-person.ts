import type { Knex } from 'knex'
import { lockThings, waitAndWake } from '../jobs/waiting.js'
import { admitToConversations } from '../persistence/arrived-conversations.js'
import { despiteLocks, inTransaction, isUniqueViolation } from '../persistence/errors.js'
import { Person, type ProfileFields } from '../persistence/models/person.js'
import { Pod as OtherPod } from '../persistence/models/pod.js'
import type { Pod } from '../pod.js'
import type { Hcard } from '../protocol/discovery-documents.js'
import { ProtocolError } from '../protocol/errors.js'
import { readPublicKey } from '../protocol/rsa.js'
import { placeOf } from './pod-place.js'
import { profileImage } from './profile-image.js'

/** What a discovery has found out about somebody. */
export interface FoundPerson {
  readonly address: string
  readonly podUrl: URL
  readonly hcard: Hcard
  /** When it was asked for. */
  readonly began: Date
}

/**
 * Remembers somebody from now on: guid, key and pod as they are at first sight, for good. Of those who are known, only what
 * they show of themselves is taken. `DiscoveryFailed` if guid or key are somebody else's.
 */
export async function savePerson(pod: Pod, found: FoundPerson): Promise<Person> {
  try {
    return await despiteLocks(() => inTransaction(pod.db, (transaction) => save(pod, transaction, found)))
  } catch (error) {
    if (!isUniqueViolation(error, 'people_guid_key')) throw error
    throw new ProtocolError('DiscoveryFailed', `the guid of ${found.address} is somebody else's`, { cause: error })
  }
}

async function save(pod: Pod, transaction: Knex.Transaction, found: FoundPerson): Promise<Person> {
  const { address, podUrl, hcard, began } = found
  const person = `person:${address}` as const
  await lockThings(transaction, [person])
  const known = await Person.byAddress(transaction, address)
  if (known === undefined) {
    const publicKey = await freeKey(transaction, found)
    const { id: podId } = await OtherPod.at(transaction, { ...placeOf(podUrl), ssl: podUrl.protocol === 'https:' })
    const identity = { guid: hcard.guid, address, publicKey, podId, refreshedAt: began }
    const { id } = await Person.add(transaction, identity, profileOf(hcard, podUrl))
    await admitToConversations(transaction, { id, address })
    await waitAndWake(pod, transaction, [], [person])
  } else {
    await Person.refresh(transaction, known.id, profileOf(hcard, podUrl), began)
  }
  return Person.byAddress(transaction, address).throwIfNotFound()
}

/** In the one form in which keys can be compared. Who has the key of somebody else could speak for them, or be them. */
async function freeKey(transaction: Knex.Transaction, { address, hcard }: FoundPerson): Promise<string> {
  const key = readPublicKey(hcard.publicKey)
  if (key === undefined) throw new ProtocolError('DiscoveryFailed', `${address} has no usable key`)
  const publicKey = key.export({ type: 'spki', format: 'pem' }).toString()
  const owner = await Person.query(transaction).findOne({ publicKey }).select('address')
  if (owner === undefined) return publicKey
  throw new ProtocolError('DiscoveryFailed', `the key of ${address} is that of ${owner.address}`)
}

function profileOf(hcard: Hcard, podUrl: URL): ProfileFields {
  return {
    firstName: hcard.firstName || null,
    lastName: hcard.lastName || null,
    imageUrl: profileImage(hcard.imageUrl, podUrl.href),
    imageUrlMedium: profileImage(hcard.imageUrlMedium, podUrl.href),
    imageUrlSmall: profileImage(hcard.imageUrlSmall, podUrl.href),
    searchable: hcard.searchable,
  }
}
