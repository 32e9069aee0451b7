import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { claimDailyBackup } from '../../persistence/operations/backup-runs.js'
import type { MonitoringServices } from '../../services/services.js'

/** The last part of the output of a failed backup that is logged. */
const LOGGED_CHARACTERS = 1_000

/**
 * Creates the daily backup if it is due and no other worker creates it. `program` is the command line of the pod: compression and
 * encryption run in a child process with a low priority. An abort ends the child; the backup is due again an hour after its claim.
 */
export async function makeDueBackup(services: MonitoringServices, program: URL, signal: AbortSignal): Promise<void> {
  const { backupAt, backupTo, backupRecipients } = services.config
  if (backupAt === undefined || backupTo === undefined || backupRecipients === '' || signal.aborted) return
  try {
    if (!(await claimDailyBackup(services.db, backupAt))) return
    await runBackup(services, program, signal)
  } catch (err) {
    services.log.error({ err }, 'daily backup not started')
  }
}

async function runBackup({ log }: MonitoringServices, program: URL, signal: AbortSignal): Promise<void> {
  log.info('daily backup started')
  const child = fork(program, ['backup', 'create', '--forget'], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  lowerPriority(child)
  const interrupt = () => child.kill('SIGTERM')
  signal.addEventListener('abort', interrupt, { once: true })
  let output = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = `${output}${text}`.slice(-LOGGED_CHARACTERS)
  })
  try {
    const [code, killedBy] = await once(child, 'close')
    if (code === 0) log.info('daily backup complete')
    else log.error({ code, killedBy, output: output.trim() }, 'daily backup failed')
  } finally {
    signal.removeEventListener('abort', interrupt)
  }
}

function lowerPriority({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW)
  } catch {
    // The process has ended already, or the system has no priorities.
  }
}
