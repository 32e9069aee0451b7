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

/** Absence of a pod never counts; only its refusals do. */
function resultOf(
  { migrationId, podId, attempts, announceUntil, offlineSince }: DueAnnouncement,
  status: number | undefined,
  now: Date,
): AnnouncementResult {
  const resultFields = { migrationId, podId, lastStatus: status ?? null }
  if (status !== undefined && status >= 200 && status < 300) {
    return { ...resultFields, attempts, dueAt: now, deliveredAt: now, givenUpAt: null }
  }
  const isRefused = status !== undefined && status >= 400 && status < 500
  const refusals = attempts + (isRefused ? 1 : 0)
  const isOver = now >= announceUntil || refusals >= IMPORT_LIMITS.announceAttempts
  const wait = isRefused ? MINUTE_MS * 2 ** refusals : waitForAbsent(offlineSince, now)
  return {
    ...resultFields,
    attempts: refusals,
    dueAt: new Date(now.getTime() + wait),
    deliveredAt: null,
    givenUpAt: isOver ? now : null,
  }
}

/** The longer a pod is away, the rarer it is tried. */
function waitForAbsent(offlineSince: Date | null, now: Date): number {
  const absentMs = offlineSince === null ? 0 : now.getTime() - offlineSince.getTime()
  if (absentMs > 365 * DAY_MS) return 91 * DAY_MS
  return absentMs > 14 * DAY_MS ? 30 * DAY_MS : 60 * MINUTE_MS
}
