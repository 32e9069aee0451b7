import {
  type AnnouncedPod,
  findMovesTo,
  findMoveTo,
  findPodsOfThreads,
  insertAnnouncements,
  insertUnknownPods,
} from '../../../persistence/archives/account-moves.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { parseAddress } from '../../../protocol/address.js'
import { isUrl } from '../../../protocol/is-url.js'
import type { Services } from '../../../services/services.js'
import { isThisPod, parseHomeUrl, parsePodHost } from '../../discovery/pod-location.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ImportingUser } from '../owner.js'
import { type ArchiveVersion, readMembers } from '../reading/archive-owner.js'
import { readItems } from '../reading/items-of-version.js'
import { type SpooledList, spooledBatches } from '../reading/spool-archive.js'
import { listEarlierMoves } from './earlier-moves.js'

/** Pods of an archive that this pod does not know, and that it notes for the announcement. */
const MAX_NEW_PODS = 2_000
const MAX_NEW_PORTS = 2

interface ArchiveOfMove {
  readonly services: Pick<Services, 'config' | 'db' | 'requestContext' | 'now'>
  readonly version: ArchiveVersion
  readonly oldAddress: string
  readonly user: Pick<ImportingUser, 'personId'>
}

/**
 * Stores to which pods the move is announced. Pods that the archive names, and pods of threads in which the person takes part, get it
 * at once, with the earlier moves; all other known pods get it later.
 */
export async function announceMove(archive: ArchiveOfMove, folder: string): Promise<void> {
  const { services, oldAddress, user } = archive
  const { people, pods } = await readHosts(archive, folder)
  const earlier = await listEarlierMoves(folder)
  const recipientUrls = new Map<string, URL>([...pods, ...people])
  await inRequestTransaction(services, async (transaction) => {
    const move = await findMoveTo(transaction, oldAddress, user.personId)
    if (move === undefined) throw new Error(`The move of ${oldAddress} is not stored.`)
    await insertUnknownPods(
      transaction,
      firstPortsOfHosts([...people.values()].map(parsePodHost)).slice(0, MAX_NEW_PODS),
    )
    const now = services.now()
    const threads = await findPodsOfThreads(transaction, user.personId)
    const first = distinctPods([...[...recipientUrls.values()].map(parsePodHost), ...threads])
    const earlierAddresses = earlier.map((each) => each.oldAddress)
    for (const { id } of await findMovesTo(transaction, user.personId, earlierAddresses)) {
      if (id !== move.id) await insertAnnouncements(transaction, id, { first, now, hours: undefined })
    }
    await insertAnnouncements(transaction, move.id, { first, now, hours: IMPORT_LIMITS.secondWaveHours })
  })
}

/** An archive could name thousands of ports of one host, which then get as many requests. */
function firstPortsOfHosts(pods: readonly AnnouncedPod[]): readonly AnnouncedPod[] {
  const portsOfHosts = new Map<string, number>()
  return distinctPods(pods).filter(({ host }) => {
    const ports = (portsOfHosts.get(host) ?? 0) + 1
    portsOfHosts.set(host, ports)
    return ports <= MAX_NEW_PORTS
  })
}

function distinctPods(pods: readonly AnnouncedPod[]): readonly AnnouncedPod[] {
  return [...new Map(pods.map(({ host, port }) => [`${host}:${port}`, { host, port }])).values()]
}

interface NamedHosts {
  /** Receiving addresses of the pods of people in the archive. */
  readonly people: Map<string, URL>
  /** Receiving addresses of pods that were subscribed to posts; unknown pods among them do not count. */
  readonly pods: Map<string, URL>
}

/** A hostile archive names millions of hosts: those after the limit are left out. */
async function readHosts(archive: ArchiveOfMove, folder: string): Promise<NamedHosts> {
  const hosts: NamedHosts = { people: new Map(), pods: new Map() }
  const add = (found: Map<string, URL>, url: URL) => {
    const isOther = !isThisPod(archive.services.config, parsePodHost(url))
    if (isOther && found.size < IMPORT_LIMITS.announcedHosts) found.set(url.host, url)
  }
  const addPerson = (value: unknown) => {
    const address = typeof value === 'string' ? parseAddress(value) : undefined
    const url = address === undefined ? undefined : parseHomeUrl(address)
    if (url !== undefined) add(hosts.people, url)
  }
  const addPod = (value: unknown) => {
    if (typeof value !== 'string' || !isUrl(value)) return
    const url = new URL(value)
    if (url.protocol === 'https:' || url.protocol === 'http:') add(hosts.pods, url)
  }
  const forEachItem = async (list: SpooledList, use: (value: unknown) => void) => {
    for await (const { items } of spooledBatches(folder, list)) {
      for (const { value } of readItems(archive, list, items)) use(value)
    }
  }
  addPerson(archive.oldAddress)
  await forEachItem('migrations', (value) => addPerson(readMembers(value)?.['old_address']))
  await forEachItem('contacts', (value) => addPerson(readMembers(value)?.['account_id']))
  for (const list of ['others_comments', 'others_reactions'] as const) {
    await forEachItem(list, (value) => addPerson(readMembers(readMembers(value)?.['entity_data'])?.['author']))
  }
  await forEachItem('posts', (value) => {
    const members = readMembers(value)
    addPerson(readMembers(members?.['entity_data'])?.['root_author'])
    for (const address of listOf(members?.['subscribed_users_ids'])) addPerson(address)
    for (const uri of listOf(members?.['subscribed_pods_uris'])) addPod(uri)
  })
  await forEachItem('conversations', (value) => {
    const participants = readMembers(readMembers(value)?.['entity_data'])?.['participants']
    if (typeof participants === 'string') participants.split(';').forEach(addPerson)
  })
  return hosts
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
