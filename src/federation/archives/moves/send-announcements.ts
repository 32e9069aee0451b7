import { Semaphore } from '../../../concurrency/semaphore.js'
import {
  type AnnouncementResult,
  type DueAnnouncement,
  leaseDueAnnouncements,
  saveAnnouncement,
} from '../../../persistence/archives/account-moves.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { podOrigin } from '../../discovery/pod-origin.js'
import { RemotePodError } from '../../remote-pod/remote-pod-error.js'
import { IMPORT_LIMITS } from '../limits.js'

const BATCH_SIZE = 50
const CONNECTIONS = 10
const LEASE_SECONDS = 120
const EXCHANGE_MS = 10_000

const MINUTE_MS = 60_000

/** Sends the announcements of moves that are due; resolves with their number. Each is one public message to one pod. */
export async function sendDueAnnouncements(services: Services, signal: AbortSignal): Promise<number> {
  const connections = new Semaphore(CONNECTIONS)
  let sent = 0
  while (!signal.aborted) {
    const due = await leaseDueAnnouncements(services.db, {
      limit: BATCH_SIZE,
      now: services.now(),
      leaseSeconds: LEASE_SECONDS,
    })
    await Promise.all(
      due.map((announcement) =>
        connections.run(async () => {
          if (signal.aborted) return
          const status = await post(services, announcement, signal)
          if (signal.aborted && status === undefined) return // due again after the lease
          await saveAnnouncement(services.db, resultOf(announcement, status, services.now()))
        }),
      ),
    )
    sent += due.length
    if (due.length === 0) break
  }
  return sent
}

/** Undefined: the pod has not answered. */
async function post(
  services: Services,
  announcement: DueAnnouncement,
  signal: AbortSignal,
): Promise<number | undefined> {
  const origin = podOrigin(announcement)
  if (origin === undefined) return undefined
  try {
    const options = { deadline: EXCHANGE_MS, signal }
    const url = `${origin}/receive/public`
    return (await services.remotePods.post(url, 'application/magic-envelope+xml', announcement.envelope, options))
      .status
  } catch (error) {
    if (error instanceof RemotePodError || signal.aborted) return undefined
    throw error
  }
}

/**
 * Refusals of a pod count, its absence does not: a pod that was away for years gets the move. Only one that has never answered anything
 * is given up, because anybody may name such hosts in an archive.
 */
function resultOf(
  { migrationId, podId, attempts, unanswered, announceUntil, offlineSince, hasEverAnswered }: DueAnnouncement,
  status: number | undefined,
  now: Date,
): AnnouncementResult {
  const resultFields = { migrationId, podId, lastStatus: status ?? null }
  if (status !== undefined && status >= 200 && status < 300) {
    return { ...resultFields, attempts, unanswered: 0, dueAt: now, deliveredAt: now, givenUpAt: null }
  }
  const isRefused = status !== undefined && status >= 400 && status < 500
  const refusals = attempts + (isRefused ? 1 : 0)
  const silences = status === undefined ? unanswered + 1 : 0
  const isUnknown = !hasEverAnswered && silences >= IMPORT_LIMITS.announceUnanswered
  const isOver = now >= announceUntil || refusals >= IMPORT_LIMITS.announceAttempts || isUnknown
  const wait = isRefused ? MINUTE_MS * 2 ** refusals : waitForAbsent(offlineSince, silences, now)
  return {
    ...resultFields,
    attempts: refusals,
    unanswered: silences,
    dueAt: new Date(now.getTime() + wait),
    deliveredAt: null,
    givenUpAt: isOver ? now : null,
  }
}

/** The longer a pod is away, and the more often it has not answered, the rarer it is tried. */
function waitForAbsent(offlineSince: Date | null, silences: number, now: Date): number {
  const absentMs = offlineSince === null ? 0 : now.getTime() - offlineSince.getTime()
  if (absentMs > 365 * DAY_MS) return 91 * DAY_MS
  if (absentMs > 14 * DAY_MS) return 30 * DAY_MS
  return Math.min(30 * DAY_MS, 5 * MINUTE_MS * 2 ** Math.max(0, silences - 1))
}
