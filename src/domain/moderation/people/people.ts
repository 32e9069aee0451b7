import { readNetwork } from '../../../networks/trusted-proxies.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import {
  findPersonRecord,
  listPersonRecords,
  type PersonContact,
  type PersonFilter,
  type PersonNote,
  type PersonRecord,
  readPersonContact,
  readPersonHistory,
} from '../../../persistence/moderation/people-records.js'
import { countRelations, type PersonRelations } from '../../../persistence/moderation/person-relations.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import type { Services } from '../../../services/services.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requireActionOn, requirePower } from '../actor.js'
import { lockLocalUser, personNotFound } from '../find-local-user.js'
import { auditContext, requireReason } from '../record-action.js'

/** Lists people. A search for an e-mail or a network address is recorded in the audit log, without the address. */
export async function listPeople(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  filter: PersonFilter,
  page: IdPage,
): Promise<ListPage<PersonRecord>> {
  requirePower(actor, 'moderation')
  if (filter.ip !== undefined && readNetwork(filter.ip) === undefined) {
    throw new Refusal('cidr_invalid', 'This is not a network address.')
  }
  const searches = [
    filter.email !== undefined && { action: 'people.email_search', label: 'an e-mail address' },
    filter.ip !== undefined && { action: 'people.ip_search', label: 'a network address' },
  ]
  for (const search of searches) {
    if (search === false) continue
    const entry = { action: search.action, target: { type: 'people', guid: null, label: search.label } }
    await inRequestTransaction(services, (transaction) =>
      appendAuditEntry(transaction, { ...auditContext(actor), ...entry }, services.now()),
    )
  }
  return listPersonRecords(services.db, filter, page)
}

export interface PersonDetails extends PersonRecord, PersonContact {
  readonly counts: PersonRelations
  readonly notes: readonly PersonNote[]
  readonly warnings: number
}

/** Reads a person with everything that restricts them. Reading an e-mail or network address is recorded in the audit log. */
export async function readPerson(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  guid: string,
): Promise<PersonDetails> {
  const moderatedPerson = await getPersonDetails(services, actor, guid)
  const possibleFields = [
    moderatedPerson.email !== null && 'email',
    (moderatedPerson.signUpIp ?? moderatedPerson.signInIp) !== null && 'ips',
  ]
  const fields = possibleFields.filter((field) => field !== false)
  if (fields.length > 0) {
    const target = { type: 'person', guid, label: moderatedPerson.address }
    await inRequestTransaction(services, (transaction) =>
      appendAuditEntry(
        transaction,
        { ...auditContext(actor), action: 'person.contact_read', target, after: { fields } },
        services.now(),
      ),
    )
  }
  return moderatedPerson
}

/** Reads a person without an audit entry, for version comparisons and for pages that do not show the addresses. */
export async function getPersonDetails(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  guid: string,
): Promise<PersonDetails> {
  requirePower(actor, 'moderation')
  const record = await findPersonRecord(db, guid)
  if (record === undefined) throw new Refusal('person_not_found', 'There is no person with this guid.')
  const { notes, warnings } = await readPersonHistory(db, record)
  const isAboutActor = record.id === actor.personId
  const contact = await readPersonContact(db, record.id)
  return {
    ...record,
    ...contact,
    counts: await countRelations(db, [record.id]),
    notes: isAboutActor ? [] : notes,
    warnings,
  }
}

/** A person with their restrictions, for the answer to an action: without notes and addresses. */
export async function getPersonState({ db }: Pick<Services, 'db'>, actor: Actor, guid: string): Promise<PersonRecord> {
  requirePower(actor, 'moderation')
  const record = await findPersonRecord(db, guid)
  if (record === undefined) throw personNotFound()
  return record
}

/** Reports of a user whose reports are muted do not raise the rank of a case. */
export async function muteReports(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  guid: string,
  { muted, reason }: { readonly muted: boolean; readonly reason?: string | undefined },
): Promise<{ readonly changed: boolean }> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const user = await lockLocalUser(transaction, guid)
    const text = requireReason({ reason })
    requireActionOn(actor, user)
    if (user.reportsMuted === muted) return { changed: false }
    await User.query(transaction).findById(user.id).patch({ reportsMuted: muted })
    await appendAuditEntry(
      transaction,
      {
        ...auditContext(actor),
        action: 'person.reports_muted',
        target: { type: 'person', guid, label: user.username },
        reason: text,
        before: { reports_muted: user.reportsMuted },
        after: { reports_muted: muted },
      },
      services.now(),
    )
    return { changed: true }
  })
}

/** Finds a person by user name or address, for commands. */
export async function getPersonGuid(
  { db }: Pick<Services, 'db'>,
  name: string,
): Promise<{ readonly guid: string; readonly address: string }> {
  const person = name.includes('@')
    ? await Person.byAddress(db, name.toLowerCase())
    : (await User.byUsername(db, name))?.person
  if (person === undefined) throw new Refusal('person_not_found', `No person named ${name} is known.`)
  return { guid: person.guid, address: person.address }
}
