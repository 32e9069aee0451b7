import { REFERENCE_LIMITS } from '../../../jobs/waiting/limits.js'
import { splitAddress } from '../../../protocol/address.js'
import { ProtocolError } from '../../../protocol/errors.js'
import type { Services } from '../../../services/services.js'
import { fetchEntity } from '../../discovery/fetch-entity.js'
import { isRemoteAddress } from '../../discovery/pod-location.js'
import { RemotePodError } from '../../remote-pod/remote-pod-error.js'
import { IMPORT_LIMITS } from '../limits.js'
import { openHostPace } from './host-pace.js'
import { readParentAuthors } from './parent-authors.js'

interface WantedOfArchive {
  readonly type: 'post' | 'poll' | 'comment'
  readonly guid: string
  /** The network ID of a person whose pod should have it. */
  readonly from: string
  readonly author?: string | undefined
}

/** Fetches what items of an archive refer to. */
export interface Fetches {
  /** Resolves when each entity is stored or cannot be fetched, or when the time for a batch is over. */
  fetchAll(wanted: readonly WantedOfArchive[], signal: AbortSignal): Promise<void>
  /** The authors of posts that the archive names, by the guids of the posts and of their polls. */
  parentAuthors(): Promise<ReadonlyMap<string, string>>
}

/** A host that does not answer so often in a row is not requested again in this import. */
const FAILURES_IN_A_ROW = 3

export function openFetches(services: Services, folder: string): Fetches {
  let parentAuthors: Promise<ReadonlyMap<string, string>> | undefined
  const pace = openHostPace(IMPORT_LIMITS.fetchIntervalMs)
  const failures = new Map<string, number>()

  async function fetchOne(wanted: WantedOfArchive, signal: AbortSignal): Promise<void> {
    const host = splitAddress(wanted.from)?.host
    if (host === undefined || !isRemoteAddress(services, wanted.from)) return
    if ((failures.get(host) ?? 0) >= FAILURES_IN_A_ROW) return
    await pace.wait(host, signal)
    try {
      const fetchesLeft = REFERENCE_LIMITS.fetchesOfMessage - 1
      await fetchEntity(services, { ...wanted, depth: 0, fetchesLeft, isForArchive: true })
      failures.delete(host)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const isAway = error.cause instanceof RemotePodError || error.cause instanceof ProtocolError
      if (isAway) failures.set(host, (failures.get(host) ?? 0) + 1)
      else failures.delete(host)
    }
  }

  return {
    parentAuthors() {
      parentAuthors ??= readParentAuthors(folder)
      return parentAuthors
    },
    async fetchAll(wanted, signal) {
      const end = performance.now() + IMPORT_LIMITS.fetchesOfBatchMs
      for (const each of wanted) {
        signal.throwIfAborted()
        if (performance.now() >= end) return
        await fetchOne(each, signal)
      }
    },
  }
}
