import type { Knex } from 'knex'
import { loadActiveFilters } from '../../domain/moderation/filters/active-filters.js'
import {
  applyFilterEffects,
  checkDocuments,
  type FilteredDocument,
  isRejected,
} from '../../domain/moderation/filters/check-documents.js'
import type { Services } from '../../services/services.js'
import type { ResolvedMessage, StepResult, StoredRecord, VerifiedMessage } from './batch.js'
import { receivingRulesOf } from './receiving-rules.js'

/** Messages that match filters. */
export type FilteredMessages = ReadonlyMap<VerifiedMessage, FilteredDocument>

export interface FilterStep extends StepResult<ResolvedMessage> {
  readonly filtered: FilteredMessages
}

/**
 * Compares a batch with the filters of this pod. Without filters it does nothing, and without a match it reads nothing from the
 * database.
 */
export async function filterMessages(services: Services, messages: readonly ResolvedMessage[]): Promise<FilterStep> {
  const filteredMessages = await findFiltered(services, messages)
  const rejects = (message: ResolvedMessage) => {
    const filterHits = filteredMessages.get(message)
    return filterHits !== undefined && isRejected(filterHits)
  }
  return {
    ready: filteredMessages.size === 0 ? messages : messages.filter((message) => !rejects(message)),
    rejected: messages.filter(rejects).map((message) => {
      return {
        inbound: message.inbound,
        message,
        fault: 'Filtered',
        reason: 'a filter of this pod rejects it',
      } as const
    }),
    ignored: [],
    waiting: [],
    filtered: filteredMessages,
  }
}

async function findFiltered(services: Services, messages: readonly ResolvedMessage[]): Promise<FilteredMessages> {
  if ((await loadActiveFilters(services)).size === 0) return new Map()
  const documents = messages.flatMap((message) => {
    if (message.inbound.isReleased) return []
    const { entity, references } = message
    const document = receivingRulesOf(entity).documentOf(entity, references)
    return document === undefined ? [] : [{ ...document, message }]
  })
  const checkedDocuments = await checkDocuments(services, documents)
  return new Map(checkedDocuments.map((each) => [each.document.message, each]))
}

/** Applies the effects of the filters that match messages of a batch. A repeated message counts once, a rejected one each time. */
export async function applyFilterEffectsToBatch(
  services: Pick<Services, 'config' | 'jobs' | 'log' | 'now'>,
  transaction: Knex.Transaction,
  filtered: FilteredMessages,
  records: readonly StoredRecord[],
): Promise<void> {
  if (filtered.size === 0) return
  const filteredRecords = records.flatMap(({ message }) => filtered.get(message) ?? [])
  await applyFilterEffects(services, transaction, filteredRecords, [...filtered.values()].filter(isRejected))
}
