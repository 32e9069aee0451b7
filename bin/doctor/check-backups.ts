import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Config } from '../../src/config/config.js'
import { type CheckResult, checkPassed, checkWarning } from '../../src/domain/operations/check-result.js'
import { readRecipients } from '../../src/operations/backup/encryption.js'
import { listBackups } from '../../src/operations/backup/list-backups.js'
import { ageInHours } from '../../src/operations/backup/manifest.js'
import { openRepository } from '../../src/operations/backup/repositories/repository.js'

const OLD_HOURS = 26

/** Checks that there is a recent, verified backup on another disk; needs no database. */
export async function checkBackups(
  {
    backupTo,
    backupS3,
    backupRecipients,
    dataDir,
  }: Pick<Config, 'backupTo' | 'backupS3' | 'backupRecipients' | 'dataDir'>,
  now: Date,
): Promise<readonly CheckResult[]> {
  if (backupTo === undefined) {
    return [
      checkWarning(
        'backup',
        'No backups are configured: set BACKUP_TO and BACKUP_RECIPIENTS, and run "pod backup create".',
      ),
    ]
  }
  const findings: CheckResult[] = []
  if ((await readRecipients(backupRecipients)).length === 0) {
    findings.push(
      checkWarning('backup', 'There is no recipient: set BACKUP_RECIPIENTS to the recipient of "pod backup keygen".'),
    )
  }
  if (await areOnSameDisk(backupTo, dataDir)) {
    findings.push(
      checkWarning('backup', `${backupTo} is on the same disk as ${dataDir}: set BACKUP_TO to another disk.`),
    )
  }
  const [newest] = (await listBackups(openRepository(backupTo, backupS3))).filter(({ complete }) => complete)
  if (newest === undefined) {
    return [...findings, checkWarning('backup', `There is no complete backup in ${backupTo}: run "pod backup create".`)]
  }
  const { manifest, verifiedAt } = newest
  const hours = ageInHours(manifest, now)
  if (hours >= OLD_HOURS) {
    findings.push(
      checkWarning('backup', `The newest backup ${manifest.id} is ${hours} hours old: run "pod backup create" daily.`),
    )
  }
  if (verifiedAt === null) {
    findings.push(
      checkWarning('backup', `The newest backup was never verified: run "pod backup verify ${manifest.id}".`),
    )
  }
  return findings.length > 0
    ? findings
    : [checkPassed('backup', `The newest backup ${manifest.id} is ${hours} hours old.`)]
}

async function areOnSameDisk(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map((path) => stat(resolve(path)).catch(() => undefined)))
  return first !== undefined && second !== undefined && first.dev === second.dev
}
