import type { Knex } from 'knex'
import { type ImportChange, recordChanges } from '../../../persistence/archives/import-changes.js'
import {
  findAspectsOfOthers,
  findClaimedAmong,
  findContactsAmong,
  findUserBlocks,
  type ImportedContact,
  insertImportedContacts,
} from '../../../persistence/archives/imported-people.js'
import {
  type BegunSharing,
  startSharing,
  stopReceiving,
  stopSharing,
} from '../../../persistence/contacts/contact-changes.js'
import { Aspect } from '../../../persistence/models/aspect.js'
import { Person } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import { findNewestIdentities } from '../../../persistence/people/move-person.js'
import { parseAddress } from '../../../protocol/address.js'
import { IMPORT_LIMITS } from '../limits.js'
import { type FoundPerson, isBlockedHere } from '../lookups/people-finder.js'
import { isOwner } from '../owner.js'
import { readMembers } from '../reading/archive-owner.js'
import { readItems } from '../reading/items-of-version.js'
import { type SpooledItem, spooledBatches } from '../reading/spool-archive.js'
import { readAspectName } from './aspect-names.js'
import { ensureAspects } from './import-aspects.js'
import {
  BatchResults,
  type ImportContext,
  type ImportRejectionReason,
  type ListImporter,
  NO_REF,
  type ReadyItem,
} from './import-context.js'

interface NamedContact extends ReadyItem {
  /** The owner shares with the person. */
  readonly receiving: boolean
  /** The person shares with the owner, as the archive claims. */
  readonly sharing: boolean
  readonly groups: readonly string[]
}

interface ReadyContact extends NamedContact {
  readonly personId: number
}

/** People with whom the owner shares, and those who shared with the old account. Nothing is sent to any of them. */
export const contactImporter: ListImporter<ReadyContact> = {
  section: 'contacts',
  list: 'contacts',

  async prepare(context, items) {
    const results = new BatchResults<ReadyContact>('contacts')
    const contacts = items.flatMap((item) => readContact(context, item, results))
    const people = await context.people.find(
      contacts.map(({ ref }) => ref),
      context.signal,
    )
    const { db } = context.services
    const { userId } = context.user
    const blocks = await findUserBlocks(db, userId)
    const ids = [...people.values()].flatMap((found) => (found.state === 'found' ? found.newest.id : []))
    const existingContacts = await findContactsAmong(db, userId, ids)
    const claimedIds = await findClaimedAmong(db, userId, ids)
    for (const contact of contacts) {
      const foundPerson = people.get(contact.ref)
      const reason = faultOf(context, contact.ref, foundPerson, blocks)
      if (reason !== undefined || foundPerson?.state !== 'found') {
        results.refuse(contact, reason ?? 'not_found')
        continue
      }
      const personId = foundPerson.newest.id
      const before = existingContacts.get(personId)
      const hasContact = !contact.receiving || before?.receiving === true
      const hasClaim = !contact.sharing || before?.sharing === true || claimedIds.has(personId)
      if (hasContact && hasClaim) results.recordPresent(contact)
      else results.accept({ ...contact, personId })
    }
    return results
  },

  async store(context, transaction, items) {
    const { user, importId } = context
    const results = new BatchResults<ReadyContact>('contacts')
    const ready = mergeByPerson(items)
    const aspects = await ensureAspects(
      context,
      transaction,
      ready.flatMap(({ groups, receiving }) => (receiving ? groups : [])),
    )
    const contacts = ready.map(({ personId, receiving, sharing, groups }) => ({
      personId,
      receiving,
      claimed: sharing,
      aspectIds: groups.flatMap((name) => aspects.get(name.toLowerCase()) ?? []),
    }))
    await recordChanges(transaction, importId, await changesOf(transaction, user.userId, contacts))
    await insertImportedContacts(transaction, user.userId, contacts)
    const personIds = ready.filter(({ receiving }) => receiving).map(({ personId }) => personId)
    const newPairs = await shareWithLocalPeople(transaction, user.personId, personIds)
    await recordChanges(
      transaction,
      importId,
      newPairs.map(({ userId }) => ({ kind: 'shared', userId: Number(userId) })),
    )
    for (const contact of items) results.recordImported(contact)
    return results.outcomes
  },
}

/** An archive may name a person twice: by the same network ID, or by an old and a new one. */
function mergeByPerson(contacts: readonly ReadyContact[]): readonly ReadyContact[] {
  const contactOfPerson = new Map<number, ReadyContact>()
  for (const contact of contacts) {
    const before = contactOfPerson.get(contact.personId)
    const both = before && {
      ...before,
      receiving: before.receiving || contact.receiving,
      sharing: before.sharing || contact.sharing,
      groups: [...new Set([...before.groups, ...contact.groups])],
    }
    contactOfPerson.set(contact.personId, both ?? contact)
  }
  return [...contactOfPerson.values()]
}

function readContact(
  context: ImportContext,
  { position, value }: SpooledItem,
  results: BatchResults<ReadyContact>,
): NamedContact[] {
  const members = readMembers(value)
  const address = typeof members?.['account_id'] === 'string' ? parseAddress(members['account_id']) : undefined
  if (members === undefined || address === undefined) {
    results.refuse({ position, ref: NO_REF }, 'schema')
    return []
  }
  const groups = Array.isArray(members['contact_groups_membership']) ? members['contact_groups_membership'] : []
  const contact = {
    position,
    ref: address,
    receiving: (members['receiving'] ?? members['followed']) === true,
    sharing: (members['sharing'] ?? members['following']) === true,
    groups: [...new Set(groups.flatMap((name) => readAspectName(context, name) ?? []))].slice(0, IMPORT_LIMITS.aspects),
  }
  return [contact]
}

function faultOf(
  context: ImportContext,
  address: string,
  found: FoundPerson | undefined,
  blocks: ReadonlySet<number>,
): ImportRejectionReason | undefined {
  if (isOwner(context, address)) return 'self'
  if (found === undefined) return 'not_found'
  if (found.state === 'refused') return found.reason
  const { newest } = found
  if (newest.id === context.user.personId) return 'self'
  if (newest.closedAt !== null) return 'closed'
  if (isBlockedHere(newest)) return 'pod_blocked'
  return blocks.has(newest.id) ? 'blocked' : undefined
}

/**
 * Names, in lower case, of the aspects that have members whom the archive does not name there: the account had an aspect of the same name
 * before, and these people have not read the posts of the archive.
 */
export async function listAspectsOfOthers(context: ImportContext, folder: string): Promise<ReadonlySet<string>> {
  const { services, user } = context
  const aspects = await Aspect.query(services.db).where({ userId: user.userId })
  const ids = new Map(aspects.map(({ name, id }) => [name.toLowerCase(), id]))
  const named: { aspectId: number; personId: number }[] = []
  for await (const { items } of spooledBatches(folder, 'contacts')) {
    const results = new BatchResults<ReadyContact>('contacts')
    const contacts = readItems(context, 'contacts', items).flatMap((item) => readContact(context, item, results))
    const addresses = contacts.map(({ ref }) => ref)
    const people = await Person.byAddresses(services.db, addresses)
    const newest = await findNewestIdentities(
      services.db,
      people.map(({ id }) => id),
    )
    const personIds = new Map(people.map(({ address, id }) => [address, newest.get(id) ?? id]))
    for (const { ref, groups } of contacts) {
      const personId = personIds.get(ref)
      const aspectIds = groups.flatMap((name) => ids.get(name.toLowerCase()) ?? [])
      if (personId !== undefined) named.push(...aspectIds.map((aspectId) => ({ aspectId, personId })))
    }
  }
  const idsOfOthers = await findAspectsOfOthers(services.db, user.userId, named)
  return new Set([...ids].flatMap(([name, id]) => (idsOfOthers.has(id) ? name : [])))
}

/** The changes by contacts, compared with the existing rows. */
async function changesOf(
  transaction: Knex.Transaction,
  userId: number,
  contacts: readonly ImportedContact[],
): Promise<readonly ImportChange[]> {
  const ids = contacts.map(({ personId }) => personId)
  const known = await findContactsAmong(transaction, userId, ids)
  const claimedIds = await findClaimedAmong(transaction, userId, ids)
  return contacts.flatMap(({ personId, ...contact }): readonly ImportChange[] => {
    const before = known.get(personId)
    const isNew = contact.receiving && before?.receiving !== true
    const aspectIds = contact.receiving ? contact.aspectIds.filter((id) => !before?.aspectIds.includes(id)) : []
    return [
      ...(isNew ? [{ kind: 'contact', personId } as const] : []),
      ...(!isNew && aspectIds.length > 0 ? [{ kind: 'memberships', personId, aspectIds } as const] : []),
      ...(contact.claimed && !claimedIds.has(personId) && before?.sharing !== true
        ? [{ kind: 'claim', personId } as const]
        : []),
    ]
  })
}

/** Stores both sides of contacts between local people, who are not notified. Returns the new pairs. */
async function shareWithLocalPeople(
  transaction: Knex.Transaction,
  personId: number,
  ids: readonly number[],
): Promise<readonly BegunSharing[]> {
  const users = await User.query(transaction)
    .select('id')
    .whereIn('personId', [...ids])
    .orderBy('id')
  return startSharing(
    transaction,
    users.map(({ id }) => ({ userId: id, personId })),
  )
}

interface ReadyBlock extends ReadyItem {
  readonly personId: number
}

/** People whom the owner blocks. A block ends a contact. */
export const blockImporter: ListImporter<ReadyBlock> = {
  section: 'blocks',
  list: 'blocks',

  async prepare(context, items) {
    const results = new BatchResults<ReadyBlock>('blocks')
    const blockItems = items.flatMap(({ position, value }) => {
      const address = typeof value === 'string' ? parseAddress(value) : undefined
      if (address !== undefined) return [{ position, ref: address }]
      results.refuse({ position, ref: NO_REF }, 'schema')
      return []
    })
    const people = await context.people.find(
      blockItems.map(({ ref }) => ref),
      context.signal,
    )
    const blocks = await findUserBlocks(context.services.db, context.user.userId)
    for (const item of blockItems) {
      const foundPerson = people.get(item.ref)
      if (isOwner(context, item.ref)) results.refuse(item, 'self')
      else if (foundPerson?.state !== 'found') results.refuse(item, foundPerson?.reason ?? 'not_found')
      else if (blocks.has(foundPerson.newest.id)) results.recordPresent(item)
      else results.accept({ ...item, personId: foundPerson.newest.id })
    }
    return results
  },

  async store({ user, importId }, transaction, ready) {
    const results = new BatchResults<ReadyBlock>('blocks')
    if (ready.length > 0) {
      const { userId } = user
      const pairs = ready.map(({ personId }) => ({ userId, personId }))
      const blockedIds = pairs.map(({ personId }) => personId)
      const contacts = await findContactsAmong(transaction, userId, blockedIds)
      const endedContacts = [...contacts.values()].filter(({ receiving }) => receiving)
      await recordChanges(transaction, importId, [
        ...endedContacts.map(({ personId, aspectIds }) => ({ kind: 'ended_contact', personId, aspectIds }) as const),
        ...blockedIds.map((personId) => ({ kind: 'block', personId }) as const),
      ])
      await transaction('blocks').insert(pairs).onConflict().ignore()
      await stopReceiving(transaction, pairs)
      const users = await User.query(transaction).select('id').whereIn('personId', blockedIds).orderBy('id')
      const endedPairs = await stopSharing(
        transaction,
        users.map(({ id }) => ({ userId: id, personId: user.personId })),
      )
      await recordChanges(
        transaction,
        importId,
        endedPairs.map(({ userId: id }) => ({ kind: 'unshared', userId: Number(id) })),
      )
    }
    for (const item of ready) results.recordImported(item)
    return results.outcomes
  },
}
