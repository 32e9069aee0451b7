import { inTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import {
  findPersonRecord,
  listPersonRecords,
  type PersonFilter,
  type PersonNote,
  type PersonRecord,
  readPersonHistory,
} from '../../persistence/moderation/people-records.js'
import { countRelations, type PersonRelations } from '../../persistence/moderation/person-relations.js'
import type { IdPage, IdPageResult } from '../../persistence/sql/id-page.js'
import type { Pod } from '../../pod/pod.js'
import { Refusal } from '../refusals.js'
import { type Actor, requireActionOn, requirePower } from './actor.js'
import { lockLocalUser } from './find-local-user.js'
import { auditContext, requireReason } from './record-action.js'

/** Lists people. A search for an e-mail address is recorded in the audit log, without the address. */
export async function listPeople(
  pod: Pick<Pod, 'db' | 'now' | 'claimedKey'>,
  actor: Actor,
  filter: PersonFilter,
  page: IdPage,
): Promise<IdPageResult<PersonRecord>> {
  requirePower(actor, 'moderation')
  if (filter.email !== undefined) {
    const entry = { action: 'people.email_search', target: { type: 'people', guid: null, label: 'an e-mail address' } }
    await inTransaction(pod, (transaction) =>
      appendAuditEntry(transaction, { ...auditContext(actor), ...entry }, pod.now()),
    )
  }
  return listPersonRecords(pod.db, filter, page)
}

export interface WholePersonRecord extends PersonRecord {
  readonly counts: PersonRelations
  readonly notes: readonly PersonNote[]
  readonly warnings: number
}

/** Reads a person with everything that restricts them. */
export async function readPerson({ db }: Pick<Pod, 'db'>, actor: Actor, guid: string): Promise<WholePersonRecord> {
  requirePower(actor, 'moderation')
  const record = await findPersonRecord(db, guid)
  if (record === undefined) throw new Refusal('person_not_found', 'There is no person with this guid.')
  const { notes, warnings } = await readPersonHistory(db, record)
  const isAboutActor = record.id === actor.personId
  return { ...record, counts: await countRelations(db, [record.id]), notes: isAboutActor ? [] : notes, warnings }
}

/** Reports of a user whose reports are muted do not raise the rank of a case. */
export async function muteReports(
  pod: Pick<Pod, 'db' | 'now' | 'claimedKey'>,
  actor: Actor,
  guid: string,
  { muted, reason }: { readonly muted: boolean; readonly reason?: string | undefined },
): Promise<{ readonly changed: boolean }> {
  requirePower(actor, 'moderation')
  return inTransaction(pod, async (transaction) => {
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
      pod.now(),
    )
    return { changed: true }
  })
}

/** Finds a person by user name or address, for commands. */
export async function findPersonGuid(
  { db }: Pick<Pod, 'db'>,
  name: string,
): Promise<{ readonly guid: string; readonly address: string }> {
  const found = name.includes('@')
    ? await Person.byAddress(db, name.toLowerCase())
    : (await User.byUsername(db, name))?.person
  if (found === undefined) throw new Refusal('person_not_found', `No person named ${name} is known.`)
  return { guid: found.guid, address: found.address }
}
