import { findMoveOf, insertAnnouncements, insertUnknownPods } from '../../../persistence/archives/account-moves.js'
import { inTransaction } from '../../../persistence/database/transactions.js'
import type { Pod } from '../../../pod/pod.js'
import { addressOf } from '../../../protocol/address.js'
import { isUrl } from '../../../protocol/is-url.js'
import { homeUrlOf, isThisPod, podHostOf } from '../../discovery/pod-location.js'
import { IMPORT_LIMITS } from '../limits.js'
import { type ArchiveVersion, membersOf } from '../reading/archive-owner.js'
import { itemsOf } from '../reading/items-of-version.js'
import { type SpooledList, spooledBatches } from '../reading/spool-archive.js'

/** Pods of an archive that this pod does not know, and that it notes for the announcement. */
const MOST_NEW_PODS = 2_000

interface ArchiveOfMove {
  readonly pod: Pick<Pod, 'db' | 'now' | 'config'>
  readonly version: ArchiveVersion
  readonly oldAddress: string
}

/** Notes to which pods the move is announced: those that the archive names at once, all other known ones later. */
export async function announceMove(archive: ArchiveOfMove, folder: string): Promise<void> {
  const { pod, oldAddress } = archive
  const { people, pods } = await readHosts(archive, folder)
  const known = new Map<string, URL>([...pods, ...people])
  await inTransaction(pod, async (transaction) => {
    const move = await findMoveOf(transaction, oldAddress)
    if (move === undefined) throw new Error(`The move of ${oldAddress} is not stored.`)
    await insertUnknownPods(transaction, [...people.values()].slice(0, MOST_NEW_PODS).map(podHostOf))
    const now = pod.now()
    const first = [...known.values()].map(podHostOf)
    await insertAnnouncements(transaction, move.id, { first, now, hours: IMPORT_LIMITS.secondWaveHours })
  })
}

interface NamedHosts {
  /** Of people in the archive. */
  readonly people: Map<string, URL>
  /** That were subscribed to posts; only known ones among them count. */
  readonly pods: Map<string, URL>
}

async function readHosts(archive: ArchiveOfMove, folder: string): Promise<NamedHosts> {
  const hosts: NamedHosts = { people: new Map(), pods: new Map() }
  const addPerson = (value: unknown) => {
    const address = typeof value === 'string' ? addressOf(value) : undefined
    const url = address === undefined ? undefined : homeUrlOf(address)
    if (url !== undefined && !isThisPod(archive.pod.config, podHostOf(url))) hosts.people.set(url.host, url)
  }
  const addPod = (value: unknown) => {
    if (typeof value !== 'string' || !isUrl(value)) return
    const url = new URL(value)
    const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
    if (isWeb && !isThisPod(archive.pod.config, podHostOf(url))) hosts.pods.set(url.host, url)
  }
  const each = async (list: SpooledList, use: (value: unknown) => void) => {
    for await (const { items } of spooledBatches(folder, list)) {
      for (const { value } of itemsOf(archive, list, items)) use(value)
    }
  }
  addPerson(archive.oldAddress)
  await each('contacts', (value) => addPerson(membersOf(value)?.['account_id']))
  for (const list of ['others_comments', 'others_reactions'] as const) {
    await each(list, (value) => addPerson(membersOf(membersOf(value)?.['entity_data'])?.['author']))
  }
  await each('posts', (value) => {
    const members = membersOf(value)
    addPerson(membersOf(members?.['entity_data'])?.['root_author'])
    for (const address of listOf(members?.['subscribed_users_ids'])) addPerson(address)
    for (const uri of listOf(members?.['subscribed_pods_uris'])) addPod(uri)
  })
  return hosts
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
