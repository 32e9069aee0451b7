import { Gauge, type Registry } from 'prom-client'
import { type BackupFigures, readBackupFigures } from '../persistence/operations/backup-runs.js'
import type { Pod } from '../pod/pod.js'
import { singleFlight } from '../throttling/single-flight.js'
import { findNewestVerified } from './backup/list-backups.js'
import { openRepository } from './backup/repository.js'

/** Milliseconds between two looks at the repository. */
const VERIFIED_READ_MS = 300_000

/** Metrics of the backups of this pod, from the database. Without a place for backups there are none. */
export function registerBackupMetrics(
  registry: Registry,
  { db, log, config }: Pick<Pod, 'db' | 'log' | 'config'>,
): void {
  if (config.backupTo === undefined) return
  /** All gauges of one scrape share one statement. */
  const read = singleFlight(() =>
    readBackupFigures(db).catch((err: unknown) => {
      log.debug({ err }, 'backup metrics unavailable')
      return undefined
    }),
  )
  const { backupTo, backupS3 } = config
  let readAt = Number.NEGATIVE_INFINITY
  let newest: Date | undefined
  /** The repository is read rarely: in S3 it costs requests. */
  const verified = singleFlight(async () => {
    if (performance.now() - readAt < VERIFIED_READ_MS) return newest
    try {
      newest = await findNewestVerified(openRepository(backupTo, backupS3))
      readAt = performance.now()
    } catch (err) {
      log.debug({ err }, 'metrics of the verified backup unavailable')
    }
    return newest
  })
  const gauge = (figure: keyof BackupFigures, name: string, help: string) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const value = (await read())?.[figure] ?? null
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
      const startedAt = await verified()
      if (startedAt === undefined) this.remove()
      else this.set((Date.now() - startedAt.getTime()) / 1_000)
    },
  })
  gauge('failures', 'pod_backup_failures_total', 'Backups that have failed or were killed.')
}
