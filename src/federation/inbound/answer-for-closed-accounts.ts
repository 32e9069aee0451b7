import type { Knex } from 'knex'
import { enqueueMessage } from '../../domain/outbound/outgoing-messages.js'
import { Person, type Profile } from '../../persistence/models/person.js'
import type { Pod } from '../../pod/pod.js'
import type { AccountDeletionEntity, AccountMigrationEntity, ProfileEntity } from '../../protocol/entities/people.js'
import { verifyMigration } from '../../protocol/signatures/migration-signature.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import type { Arrival, Recipient, RejectedMessage } from './batch.js'

/** Whoever writes to somebody who has left has not heard of it: their pod is told, or where that person has moved. */
export async function answerForClosed(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const closed = new Map<number, { readonly recipient: Recipient; readonly senders: Set<string> }>()
  for (const each of rejected) {
    if (!isForClosed(each)) continue
    const { recipient, sender } = each.arrival
    const answer = closed.get(recipient.personId) ?? { recipient, senders: new Set() }
    closed.set(recipient.personId, answer)
    answer.senders.add(sender)
  }
  for (const { recipient, senders } of [...closed.values()].sort(byPerson)) {
    const people = await Person.byAddresses(transaction, [...senders])
      .select('id')
      .orderBy('id')
    const entity = await farewell(transaction, recipient)
    if (entity === undefined) continue
    const message = { record: entity.type, guid: recipient.guid, verb: 'create', senderId: recipient.personId } as const
    const personIds = people.map(({ id }) => id)
    await enqueueMessage(pod, transaction, { ...message, public: true, entity }, { of: 'people', personIds })
  }
}

type ForClosed = RejectedMessage & { readonly arrival: Arrival & { readonly recipient: Recipient } }

/** Only whoever has been proven to have written it gets an answer. */
function isForClosed(rejected: RejectedMessage): rejected is ForClosed {
  return rejected.fault === 'RecipientClosed' && rejected.arrival?.recipient !== undefined
}

type Letters = { readonly recipient: Recipient }

/** Each makes or takes one row of what is sent: everybody in one order. */
function byPerson(one: Letters, other: Letters): number {
  return one.recipient.personId - other.recipient.personId
}

/** Undefined: the migration was signed here and told by the new identity, so it is not ours to tell. */
async function farewell(
  transaction: Knex.Transaction,
  { personId, address }: Recipient,
): Promise<AccountDeletionEntity | AccountMigrationEntity | undefined> {
  const migration = await transaction('accountMigrations').where({ oldPersonId: personId }).first()
  if (migration === undefined) return { type: 'account_deletion', author: address }
  const person = await Person.query(transaction)
    .findById(migration.newPersonId)
    .withGraphFetched('profile')
    .throwIfNotFound()
  if (person.profile === undefined) throw new Error(`Person ${person.id} has no profile.`)
  const entity: AccountMigrationEntity = {
    type: 'account_migration',
    author: address,
    profile: openPart(person.address, person.profile),
    signature: migration.signature,
    old_identity: address,
    remote_photo_path: migration.remotePhotoPath ?? undefined,
  }
  const witnessKey = readPublicKey(person.publicKey)
  return witnessKey !== undefined && verifyMigration(entity, witnessKey) ? entity : undefined
}

/** What everybody may know; whoever knows a newer profile keeps it, for this one tells its age. */
function openPart(author: string, profile: Profile): ProfileEntity {
  const details = profile.publicDetails ? profile : undefined
  return {
    type: 'profile',
    author,
    edited_at: profile.editedAt ?? profile.acceptedAt ?? profile.updatedAt,
    first_name: profile.firstName ?? undefined,
    last_name: profile.lastName ?? undefined,
    image_url: profile.imageUrl ?? undefined,
    image_url_medium: profile.imageUrlMedium ?? undefined,
    image_url_small: profile.imageUrlSmall ?? undefined,
    bio: details?.bio || undefined,
    birthday: details?.birthday ?? undefined,
    gender: details?.gender ?? undefined,
    location: details?.location || undefined,
    searchable: profile.searchable,
    public: profile.publicDetails,
    nsfw: profile.nsfw,
    tag_string: profile.tags.map((tag) => `#${tag}`).join(' ') || undefined,
  }
}
