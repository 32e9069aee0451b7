import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Contact } from '../../persistence/models/contact.js'
import { Person } from '../../persistence/models/person.js'
import { RemotePod } from '../../persistence/models/remote-pod.js'
import type { User } from '../../persistence/models/user.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import { addCaseWork, type CaseRow, findCase, listFirstReports, lockCase } from '../../persistence/moderation/cases.js'
import { splitAddress } from '../../protocol/address.js'
import { firstCharacters } from '../../protocol/values.js'
import type { ModerationServices, Services } from '../../services/services.js'
import { beginConversation } from '../conversations/begin-conversation.js'
import { enqueueLiveEventsAndMails } from '../notifications/enqueue-live-events.js'
import { Refusal } from '../refusals.js'
import { type Actor, requirePower } from './actor.js'
import { caseEntry, caseNotFound, excludedAuthorFor } from './cases.js'
import { MODERATION_LIMITS } from './limits.js'
import { findPodmin } from './notices/send-notice.js'
import { auditContext, readReason } from './record-action.js'

export interface ForwardInput {
  readonly includeReason?: boolean | undefined
  /** Sends the text; without it nothing is sent. */
  readonly via?: 'conversation' | undefined
  /** Why the text is sent, for the audit log. */
  readonly reason?: string | undefined
}

/** A text about a case for the operator of the author's pod, and the ways to send it. */
export interface ForwardedCase {
  /** Names no reporter and nothing private. */
  readonly text: string
  /** The operator whom NodeInfo of that pod names. */
  readonly podmin: string | null
  /** Whether the podmin account of this pod can write to that operator. */
  readonly canConverse: boolean
  readonly mailto: string
  readonly sent: boolean
}

/**
 * Writes a text for the operator of the author's pod. The protocol has no entity for reports. With `via` the podmin account of this pod
 * sends it as a conversation; the other pod accepts that from contacts of its operator only.
 */
export async function forwardCase(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { includeReason = false, via, reason: given }: ForwardInput,
): Promise<ForwardedCase> {
  requirePower(actor, 'moderation')
  const reason = readReason({ reason: given })
  return inRequestTransaction(services, async (transaction) => {
    const find = via === undefined ? findCase : lockCase
    const caseRow = await find(transaction, id, excludedAuthorFor(actor))
    if (caseRow === undefined) throw caseNotFound()
    const host = requireRemoteHost(services, caseRow)
    const text = await textOf(services, transaction, caseRow, includeReason)
    const podmin = await findOtherPodmin(transaction, host)
    const sender = await findPodmin(services, transaction)
    const recipient = await findReachable(transaction, sender, podmin)
    if (via !== undefined) {
      if (sender?.person === undefined || recipient === undefined) throw noContact(host)
      const at = services.now()
      const subject = `A report from ${services.config.host}`
      await beginConversation(services, transaction, sender.person, {
        recipients: [recipient],
        subject,
        text,
        createdAt: at,
      })
      await addCaseWork(transaction, {
        caseId: id,
        event: 'forwarded',
        actorId: actor.userId,
        at,
        text: `to ${recipient.address}`,
      })
      await enqueueLiveEventsAndMails(services, transaction, { cases: [id] })
      const after = { via, to: recipient.address, reason_included: includeReason }
      const entry = { ...auditContext(actor), ...caseEntry(caseRow, 'case.forwarded'), reason, after }
      await appendAuditEntry(transaction, entry, at)
    }
    return {
      text,
      podmin,
      canConverse: recipient !== undefined,
      sent: via !== undefined,
      mailto: `mailto:?subject=${encodeURIComponent(`Report of ${caseRow.authorAddress}`)}&body=${encodeURIComponent(text)}`,
    }
  })
}

function requireRemoteHost({ config }: Pick<Services, 'config'>, { authorAddress }: CaseRow): string {
  const host = authorAddress === null ? undefined : splitAddress(authorAddress)?.host
  if (host !== undefined && host !== config.host) return host
  throw new Refusal('not_remote', 'The author is not on another pod.')
}

async function textOf(
  services: Pick<Services, 'config'>,
  transaction: Knex.Transaction,
  caseRow: CaseRow,
  shouldIncludeReason: boolean,
): Promise<string> {
  const { targetType: type, authorAddress: author } = caseRow
  const lines = [
    `The moderators of ${services.config.host} have received a report about ${
      type === 'person' ? `the person ${author}` : `a ${caseRow.public ? '' : 'private '}${type} by ${author}`
    }.`,
  ]
  const link = publicLinkOf(caseRow)
  if (link !== undefined) lines.push(link)
  if (shouldIncludeReason) {
    const reports = await listFirstReports(transaction, caseRow.id, REASONS)
    const reasons = reports.map(({ reason }) => truncateReason(reason))
    lines.push(...reasons.map((reason) => `Reason: ${reason}`))
  }
  return lines.join('\n\n')
}

const REASONS = 10

function truncateReason(reason: string): string {
  const start = firstCharacters(reason, MODERATION_LIMITS.reasonCharacters)
  return start === reason ? reason : `${start}…`
}

/** The page on the pod of the author: its operator finds the content there. */
function publicLinkOf({ public: isPublic, targetType, targetGuid, parentGuid, authorAddress, authorGuid }: CaseRow) {
  const host = splitAddress(authorAddress ?? '')?.host
  if (!isPublic || host === undefined) return undefined
  if (targetType === 'post') return `https://${host}/posts/${targetGuid}`
  if (targetType === 'comment') return `https://${host}/posts/${parentGuid}#${targetGuid}`
  return targetType === 'person' ? `https://${host}/people/${authorGuid}` : undefined
}

/** NodeInfo names the operator by user name or by address. */
async function findOtherPodmin(transaction: Knex.Transaction, host: string): Promise<string | null> {
  const [name = '', port] = host.split(':')
  const other = await RemotePod.query(transaction).findOne({ host: name, port: Number(port ?? 443) })
  const account = other?.adminAccount
  if (account == null) return null
  return account.includes('@') ? account : `${account}@${host}`
}

/** The operator, if they share with the podmin account of this pod. */
async function findReachable(
  transaction: Knex.Transaction,
  sender: User | undefined,
  podmin: string | null,
): Promise<Person | undefined> {
  if (sender === undefined || podmin === null) return undefined
  const person = await Person.byAddress(transaction, podmin)
  if (person === undefined || person.closedAt !== null) return undefined
  const contact = await Contact.query(transaction).findOne({ userId: sender.id, personId: person.id, sharing: true })
  return contact === undefined ? undefined : person
}

function noContact(host: string): Refusal {
  return new Refusal('no_contact', `The operator of ${host} does not share with the podmin account of this pod.`)
}
