import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import { type FilterRule, findFilteredAuthors } from '../../../persistence/moderation/filters.js'
import { splitAddress } from '../../../protocol/address.js'
import type { Services } from '../../../services/services.js'
import { type Actor, requirePower } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import { auditContext } from '../record-action.js'
import { buildExcerpt, type FilteredDocument } from './check-documents.js'
import { type NewFilter, powerForFilter, readFilterRule } from './filters.js'
import { scanDocuments, sinceDays } from './scan-documents.js'

interface DryRunSample {
  readonly type: FilteredDocument['document']['type']
  readonly guid: string
  readonly author: string
  readonly field: string
  /** Null for private content. */
  readonly excerpt: string | null
}

export interface FilterDryRun {
  readonly hits: number
  readonly authors: number
  readonly pods: number
  /** Authors whom a local user follows. */
  readonly followed: number
  readonly samples: readonly DryRunSample[]
  readonly scannedFrom: Date
  readonly complete: boolean
}

/** Finds the hits that a filter would have had in the last days. Changes nothing; reading private content is recorded in the audit log. */
export async function dryRunFilter(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  input: NewFilter,
  { days = 7 }: { readonly days?: number | undefined },
): Promise<FilterDryRun> {
  requirePower(actor, 'moderation')
  const rule = readFilterRule(input)
  requirePower(actor, powerForFilter(rule))
  if (rule.isPrivate) await recordPrivateRead(services, actor, rule)
  const { found, scannedFrom, complete } = await scanDocuments(services, rule, sinceDays(services, days))
  const authors = [...new Set(found.map(({ document }) => document.author))]
  const followedAuthors = (await findFilteredAuthors(services.db, authors)).filter(({ isFollowed }) => isFollowed)
  return {
    hits: found.length,
    authors: authors.length,
    pods: new Set(authors.map((address) => splitAddress(address)?.host)).size,
    followed: followedAuthors.length,
    samples: found.slice(0, MODERATION_LIMITS.dryRunSamples).map(sampleOf),
    scannedFrom,
    complete,
  }
}

async function recordPrivateRead(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  { kind, value }: FilterRule,
): Promise<void> {
  const target = { type: 'filter', guid: null, label: `${kind}: ${value}` }
  await inRequestTransaction(services, (transaction) =>
    appendAuditEntry(transaction, { ...auditContext(actor), action: 'filter.private_read', target }, services.now()),
  )
}

function sampleOf({ document: { type, guid, author, isPublic, texts }, matches }: FilteredDocument): DryRunSample {
  const field = matches[0]?.field ?? ''
  const text = texts.find((each) => each.field === field)?.text ?? ''
  return { type, guid, author, field, excerpt: isPublic ? buildExcerpt(text) : null }
}
