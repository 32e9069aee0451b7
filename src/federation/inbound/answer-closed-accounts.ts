import type { Knex } from 'knex'
import { storeMessage } from '../../domain/outbound/outgoing-messages.js'
import { Person, type Profile } from '../../persistence/models/person.js'
import type { AccountDeletionEntity, AccountMigrationEntity, ProfileEntity } from '../../protocol/entities/people.js'
import { verifyMigration } from '../../protocol/signatures/migration-signature.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import type { Services } from '../../services/services.js'
import type { InboundRecipient, RejectedMessage, VerifiedMessage } from './batch.js'

/** Sends the account deletion, or the migration, to people who still write to a closed account. */
export async function answerSendersToClosedAccounts(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const messages = rejected.filter(isToClosedAccount)
  await answerWithClosingEntities(
    services,
    transaction,
    messages.map(({ message: { recipient, sender } }) => ({ account: recipient, sender })),
  )
}

interface MessageTo {
  readonly account: ClosedAccount
  readonly sender: string
}

/** Answers all senders to an account with one message. The accounts come in one order, so that two transactions cannot deadlock. */
export async function answerWithClosingEntities(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly MessageTo[],
): Promise<void> {
  const sendersByAccount = new Map<number, { readonly account: ClosedAccount; readonly senders: Set<string> }>()
  for (const { account, sender } of messages) {
    const answer = sendersByAccount.get(account.personId) ?? { account, senders: new Set() }
    sendersByAccount.set(account.personId, answer)
    answer.senders.add(sender)
  }
  const answers = [...sendersByAccount.values()].sort((one, other) => one.account.personId - other.account.personId)
  for (const { account, senders } of answers) {
    await answerWithClosingEntity(services, transaction, account, [...senders])
  }
}

type ClosedAccount = Pick<InboundRecipient, 'personId' | 'guid' | 'address'>

/** Sends people the account deletion, or the migration, of a closed account. */
async function answerWithClosingEntity(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  recipient: ClosedAccount,
  senders: readonly string[],
): Promise<void> {
  const people = await Person.byAddresses(transaction, senders).select('id').orderBy('id')
  const entity = await findClosingEntity(transaction, recipient)
  if (entity === undefined) return
  const message = { record: entity.type, guid: recipient.guid, verb: 'create', senderId: recipient.personId } as const
  const personIds = people.map(({ id }) => id)
  await storeMessage(services, transaction, { ...message, public: true, entity }, { kind: 'people', personIds })
}

type MessageToClosedAccount = RejectedMessage & {
  readonly message: VerifiedMessage & { readonly recipient: InboundRecipient }
}

/** True only for opened messages, whose signature proves the sender. */
function isToClosedAccount(rejected: RejectedMessage): rejected is MessageToClosedAccount {
  return rejected.fault === 'RecipientClosed' && rejected.message?.recipient !== undefined
}

/** Undefined: the new identity cannot verify the migration that this pod has signed, so only the new pod can send it. */
async function findClosingEntity(
  transaction: Knex.Transaction,
  { personId, address }: ClosedAccount,
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
    profile: publicProfileOf(person.address, person.profile),
    signature: migration.signature,
    old_identity: address,
    remote_photo_path: migration.remotePhotoPath ?? undefined,
  }
  const witnessKey = readPublicKey(person.publicKey)
  return witnessKey !== undefined && verifyMigration(entity, witnessKey) ? entity : undefined
}

/** The public part of a profile. Its edit time lets a receiver keep a newer profile. */
function publicProfileOf(author: string, profile: Profile): ProfileEntity {
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
