import type { Knex } from 'knex'
import { inTransaction } from '../../../persistence/database/transactions.js'
import {
  addClusterItems,
  type ClusterRow,
  countUngrouped,
  createCluster,
  findGrowingClusters,
  groupContentIds,
  leaveOutKnownAuthors,
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
import type { Pod } from '../../../pod/pod.js'
import { enqueueAnnouncement } from '../../notifications/announcements.js'
import { hideFoundContent } from '../hide-found-content.js'
import { MODERATION_LIMITS } from '../limits.js'
import { buildContentKeys, type ContentKey } from './content-keys.js'

export type ClusterPod = Pick<Pod, 'db' | 'jobs' | 'config' | 'now' | 'log' | 'requestContext'>

export interface FoundClusters {
  readonly rows: number
  readonly opened: number
  readonly items: number
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/**
 * Reads new public content and groups what has a text, link, photo or set of mentions in common. A group above the thresholds is a
 * cluster with a case; content of the same key that comes later joins it. Runs beside the receive path and reads a bounded number of rows.
 */
export async function findClusters(pod: ClusterPod): Promise<FoundClusters> {
  const keys = new Map<string, ContentKey>()
  const senderKeys = new Set<string>()
  let rows = 0
  for (const source of NEW_CONTENT_SOURCES) {
    rows += await readSource(pod, source, async (content) => {
      const keyedContent = content.flatMap((newContent) => keysOf(pod, newContent))
      for (const { key, found: contentKey } of keyedContent) {
        if (contentKey === undefined) senderKeys.add(key)
        else keys.set(key, contentKey)
      }
      await insertContentKeys(pod.db, keyedContent.map(rowOf), pod.now())
    })
  }
  const since = new Date(pod.now().getTime() - HOUR_MS)
  const opened = await openClusters(pod, keys, since)
  await reportSenders(pod, [...senderKeys], since)
  await deleteContentKeysBefore(pod.db, new Date(since.getTime() - HOUR_MS))
  return { rows, ...opened }
}

interface KeyedContent {
  readonly content: NewContent
  readonly key: string
  /** Undefined: a conversation, of which only the number counts. */
  readonly found?: ContentKey
}

function keysOf({ config }: ClusterPod, content: NewContent): readonly KeyedContent[] {
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

/** Rows of the run before are read again, because a transaction may commit after one with higher ids; not while there is a backlog. */
async function readSource(
  { db }: ClusterPod,
  source: NewContentSource,
  take: (content: readonly NewContent[]) => Promise<void>,
): Promise<number> {
  const { safeId, lastId } = await findReadPosition(db, source)
  let after = safeId
  let rows = 0
  let isOver = false
  while (!isOver && rows < MODERATION_LIMITS.clusterRows) {
    const content = await readNewContent(db, source, { after, limit: MODERATION_LIMITS.clusterRowsAtOnce })
    await take(content)
    rows += content.length
    after = content.at(-1)?.id ?? after
    isOver = content.length < MODERATION_LIMITS.clusterRowsAtOnce
  }
  const last = Math.max(after, lastId)
  await saveReadPosition(db, source, { safeId: isOver ? lastId : last, lastId: last })
  return rows
}

async function openClusters(
  pod: ClusterPod,
  keys: ReadonlyMap<string, ContentKey>,
  since: Date,
): Promise<Pick<FoundClusters, 'opened' | 'items'>> {
  if (keys.size === 0) return { opened: 0, items: 0 }
  const { spamClusterItems: items, spamClusterAuthors: authors } = pod.config
  const { spamAuthorItems: itemsOfAuthor, spamAuthorThreads: owners } = pod.config
  const newSince = new Date(pod.now().getTime() - MODERATION_LIMITS.newAuthorDays * DAY_MS)
  const given = [...keys.keys()]
  const passing = await findClusterKeys(pod.db, given, { items, authors, itemsOfAuthor, owners, newSince, since })
  const clusters = await findGrowingClusters(pod.db, given, { dismissedSince: newSince })
  const added = passing.filter((key) => !clusters.some((cluster) => cluster.key === key))
  if (added.length + clusters.length === 0) return { opened: 0, items: 0 }
  return inTransaction(pod, async (transaction) => {
    const ids = clusters.map(({ id }) => id)
    for (const id of ids) await lockCluster(transaction, id)
    const growth = { since, at: pod.now(), maxItems: MODERATION_LIMITS.clusterItems }
    const grown = await addClusterItems(transaction, ids, growth)
    if (pod.config.spamAutoHide) await hideNewItems(pod, transaction, clusters, grown)
    const opened: NewClusterItem[] = []
    let count = 0
    for (const content of mostPreciseFirst(added.flatMap((key) => keys.get(key) ?? []))) {
      // A wave has several keys: a link and a text. The content of one cluster makes no second one.
      if ((await countUngrouped(transaction, content.key, since)) < items) continue
      const { id, caseId } = await createCluster(transaction, content, pod.now())
      if (caseId !== null) await enqueueAnnouncement(pod, transaction, { cases: [caseId] })
      opened.push(...(await addClusterItems(transaction, [id], growth)))
      count += 1
    }
    return { opened: count, items: grown.length + opened.length }
  })
}

const PRECISION: readonly ContentKey['kind'][] = ['link', 'photo', 'text', 'mentions']

function mostPreciseFirst(keys: readonly ContentKey[]): readonly ContentKey[] {
  return keys.toSorted((one, other) => PRECISION.indexOf(one.kind) - PRECISION.indexOf(other.kind))
}

/** New content of clusters that were open before, by people without local followers. The undo of each action shows it again. */
async function hideNewItems(
  pod: ClusterPod,
  transaction: Knex.Transaction,
  clusters: readonly ClusterRow[],
  grown: readonly NewClusterItem[],
): Promise<void> {
  const hideable = grown.length === 0 ? [] : await leaveOutKnownAuthors(transaction, grown)
  for (const { id, kind, label, caseId } of clusters.filter(({ state }) => state === 'open')) {
    const items = hideable.filter(({ clusterId }) => clusterId === id)
    if (items.length === 0) continue
    const target = { type: 'cluster', guid: String(id), label: `${kind}: ${label}` }
    const reason = 'New content of an open cluster (SPAM_AUTO_HIDE).'
    await hideFoundContent(pod, transaction, target, groupContentIds(items), { reason, caseId: caseId ?? undefined })
  }
}

async function reportSenders(pod: ClusterPod, keys: readonly string[], since: Date): Promise<void> {
  if (keys.length === 0) return
  const senders = await findConversationSenders(pod.db, keys, { since, moreThan: pod.config.spamConversations })
  if (senders.length === 0) return
  await inTransaction(pod, async (transaction) => {
    await enqueueAnnouncement(pod, transaction, { cases: await createSenderCases(transaction, senders, pod.now()) })
  })
}
