import { Gauge, type Registry } from 'prom-client'
import { singleFlight } from '../concurrency/single-flight.js'
import { type BackupMetrics, readBackupMetrics } from '../persistence/operations/backup-runs.js'
import type { MonitoringServices } from '../services/services.js'
import { findNewestVerified } from './backup/list-backups.js'
import { openRepository } from './backup/repositories/repository.js'

/** Milliseconds between two reads of the repository. */
const VERIFIED_READ_MS = 300_000

/** Metrics of the backups of this pod. Without a place for backups there are only those of backups that another program has made. */
export function registerBackupMetrics(registry: Registry, { db, log, config }: MonitoringServices): void {
  /** All gauges of one scrape share one statement. */
  const { backupTo, backupS3 } = config
  const read = singleFlight(async () => {
    try {
      const counters = await readBackupMetrics(db)
      return backupTo === undefined && counters.tool === null ? undefined : counters
    } catch (err) {
      log.debug({ err }, 'backup metrics unavailable')
      return undefined
    }
  })
  let readAt = Number.NEGATIVE_INFINITY
  let newest: Date | undefined
  /** The repository is read rarely: in S3 it costs requests. */
  const findVerifiedStart = singleFlight(async () => {
    if (backupTo === undefined) return undefined
    if (performance.now() - readAt < VERIFIED_READ_MS) return newest
    try {
      newest = await findNewestVerified(openRepository(backupTo, backupS3))
      readAt = performance.now()
    } catch (err) {
      log.debug({ err }, 'metrics of the verified backup unavailable')
    }
    return newest
  })
  const gauge = (counter: Exclude<keyof BackupMetrics, 'tool'>, name: string, help: string) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const value = (await read())?.[counter] ?? null
        if (value === null)
          this.remove() // an old figure would look current
        else this.set(value)
      },
    })
  gauge('age', 'pod_backup_age_seconds', 'Since the start of the last complete backup.')
  gauge('duration', 'pod_backup_duration_seconds', 'Time of the last complete backup.')
  gauge('bytes', 'pod_backup_bytes', 'Size of the last complete backup, with the pictures it shares with others.')
  new Gauge({
    name: 'pod_backup_verified_age_seconds',
    help: 'Since the start of the newest backup that was verified.',
    registers: [registry],
    async collect() {
      const startedAt = await findVerifiedStart()
      const recordedAge = (await read())?.verifiedAge ?? null
      const ownAge = startedAt === undefined ? null : (Date.now() - startedAt.getTime()) / 1_000
      const ages = [recordedAge, ownAge].filter((age) => age !== null)
      if (ages.length === 0) this.remove()
      else this.set(Math.min(...ages))
    },
  })
  if (backupTo !== undefined) gauge('failures', 'pod_backup_failures_total', 'Backups that have failed or were killed.')
}
