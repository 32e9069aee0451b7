import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import {
  addClusterItems,
  type ClusterRow,
  countUngroupedContent,
  createCluster,
  excludeKnownAuthors,
  findGrowingClusters,
  groupContentIds,
  lockCluster,
  type NewClusterItem,
} from '../../../persistence/moderation/clusters.js'
import {
  deleteContentKeysBefore,
  findClusterKeys,
  findConversationSenders,
  findReadPosition,
  insertContentKeys,
  NEW_CONTENT_SOURCES,
  type NewContent,
  type NewContentKey,
  type NewContentSource,
  readNewContent,
  saveReadPosition,
} from '../../../persistence/moderation/content-keys.js'
import { createSenderCases } from '../../../persistence/moderation/sender-cases.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { ModerationServices } from '../../../services/services.js'
import { enqueueLiveEventsAndMails } from '../../notifications/enqueue-live-events.js'
import { reopeningTimes } from '../cases.js'
import { hideFoundContent } from '../hide-found-content.js'
import { MODERATION_LIMITS } from '../limits.js'
import { buildContentKeys, type ContentKey } from './content-keys.js'

export interface FoundClusters {
  readonly rows: number
  readonly opened: number
  readonly items: number
}

const HOUR_MS = 3_600_000

/**
 * Reads new public content and groups what has a text, link, photo or set of mentions in common. A group above the thresholds is a
 * cluster with a case; content of the same key that comes later joins it. Runs alongside the receive path and reads a bounded number of rows.
 */
export async function findClusters(services: ModerationServices): Promise<FoundClusters> {
  const keys = new Map<string, ContentKey>()
  const senderKeys = new Set<string>()
  let rows = 0
  for (const source of NEW_CONTENT_SOURCES) {
    rows += await readSource(services, source, async (content) => {
      const keyedContent = content.flatMap((newContent) => keysOf(services, newContent))
      for (const { key, found: contentKey } of keyedContent) {
        if (contentKey === undefined) senderKeys.add(key)
        else keys.set(key, contentKey)
      }
      await insertContentKeys(services.db, keyedContent.map(rowOf), services.now())
    })
  }
  const since = new Date(services.now().getTime() - HOUR_MS)
  const openedClusters = await openClusters(services, keys, since)
  await reportSenders(services, [...senderKeys], since)
  await deleteContentKeysBefore(services.db, new Date(since.getTime() - HOUR_MS))
  return { rows, ...openedClusters }
}

interface KeyedContent {
  readonly content: NewContent
  readonly key: string
  /** Undefined: a conversation, of which only the number counts. */
  readonly found?: ContentKey
}

function keysOf({ config }: ModerationServices, content: NewContent): readonly KeyedContent[] {
  if (content.type === 'conversation') return [{ content, key: `conversations:${content.authorId}` }]
  return buildContentKeys(content, config.host).map((contentKey) => ({
    content,
    key: contentKey.key,
    found: contentKey,
  }))
}

function rowOf({ content: { type, id, authorId, ownerId }, key }: KeyedContent): NewContentKey {
  return { key, type, id, authorId, ownerId }
}

/** Reads the rows of the last run again, except during a backlog: a transaction may commit after one with higher ids. */
async function readSource(
  { db }: ModerationServices,
  source: NewContentSource,
  take: (content: readonly NewContent[]) => Promise<void>,
): Promise<number> {
  const { safeId, lastId } = await findReadPosition(db, source)
  let after = safeId
  let rows = 0
  let isOver = false
  while (!isOver && rows < MODERATION_LIMITS.clusterRows) {
    const content = await readNewContent(db, source, { after, limit: MODERATION_LIMITS.clusterRowsPerBatch })
    await take(content)
    rows += content.length
    after = content.at(-1)?.id ?? after
    isOver = content.length < MODERATION_LIMITS.clusterRowsPerBatch
  }
  const last = Math.max(after, lastId)
  await saveReadPosition(db, source, { safeId: isOver ? lastId : last, lastId: last })
  return rows
}

async function openClusters(
  services: ModerationServices,
  keys: ReadonlyMap<string, ContentKey>,
  since: Date,
): Promise<Pick<FoundClusters, 'opened' | 'items'>> {
  if (keys.size === 0) return { opened: 0, items: 0 }
  const { spamClusterItems: items, spamClusterAuthors: authors } = services.config
  const { spamAuthorItems: itemsOfAuthor, spamAuthorThreads: owners } = services.config
  const newSince = new Date(services.now().getTime() - MODERATION_LIMITS.newAuthorDays * DAY_MS)
  const allKeys = [...keys.keys()]
  const keysAboveThresholds = await findClusterKeys(services.db, allKeys, {
    items,
    authors,
    itemsOfAuthor,
    owners,
    newSince,
    since,
  })
  const clusters = await findGrowingClusters(services.db, allKeys, { dismissedSince: newSince })
  const newKeys = keysAboveThresholds.filter((key) => !clusters.some((cluster) => cluster.key === key))
  if (newKeys.length + clusters.length === 0) return { opened: 0, items: 0 }
  return inRequestTransaction(services, async (transaction) => {
    const ids = clusters.map(({ id }) => id)
    for (const id of ids) await lockCluster(transaction, id)
    const growth = { since, at: services.now(), maxItems: MODERATION_LIMITS.clusterItems }
    const grown = await addClusterItems(transaction, ids, growth)
    if (services.config.spamAutoHide) await hideNewItems(services, transaction, clusters, grown)
    const openedItems: NewClusterItem[] = []
    let count = 0
    for (const content of sortByPrecision(newKeys.flatMap((key) => keys.get(key) ?? []))) {
      // A wave has several keys: a link and a text. The content of one cluster makes no second one.
      if ((await countUngroupedContent(transaction, content.key, since)) < items) continue
      const { id, caseId } = await createCluster(transaction, content, services.now())
      if (caseId !== null) await enqueueLiveEventsAndMails(services, transaction, { cases: [caseId] })
      openedItems.push(...(await addClusterItems(transaction, [id], growth)))
      count += 1
    }
    return { opened: count, items: grown.length + openedItems.length }
  })
}

const PRECISION: readonly ContentKey['kind'][] = ['link', 'photo', 'text', 'mentions']

function sortByPrecision(keys: readonly ContentKey[]): readonly ContentKey[] {
  return keys.toSorted((one, other) => PRECISION.indexOf(one.kind) - PRECISION.indexOf(other.kind))
}

/** New content of clusters that were open before, by people without local followers. The undo of each action shows it again. */
async function hideNewItems(
  services: ModerationServices,
  transaction: Knex.Transaction,
  clusters: readonly ClusterRow[],
  grown: readonly NewClusterItem[],
): Promise<void> {
  const hideable = grown.length === 0 ? [] : await excludeKnownAuthors(transaction, grown)
  for (const { id, kind, label, caseId } of clusters.filter(({ state }) => state === 'open')) {
    const items = hideable.filter(({ clusterId }) => clusterId === id)
    if (items.length === 0) continue
    const target = { type: 'cluster', guid: String(id), label: `${kind}: ${label}` }
    const reason = 'New content of an open cluster (SPAM_AUTO_HIDE).'
    await hideFoundContent(services, transaction, {
      target,
      ids: groupContentIds(items),
      reason,
      caseId: caseId ?? undefined,
    })
  }
}

async function reportSenders(services: ModerationServices, keys: readonly string[], since: Date): Promise<void> {
  if (keys.length === 0) return
  const senders = await findConversationSenders(services.db, keys, {
    since,
    moreThan: services.config.spamConversations,
  })
  if (senders.length === 0) return
  await inRequestTransaction(services, async (transaction) => {
    await enqueueLiveEventsAndMails(services, transaction, {
      cases: await createSenderCases(transaction, senders, reopeningTimes(services.now())),
    })
  })
}
