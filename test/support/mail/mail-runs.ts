import { jobOfRow, loadJob, Postponed } from '../../../src/jobs/outbox/load-job.js'
import type { Services } from '../../../src/services/services.js'
import { FailedJob } from '../../../workers/failed-job.js'
import { mailHandlers } from '../../../workers/handlers/mail.js'
import { outcomeOfError } from '../../../workers/job-outcome.js'

type Run = (pod: Services, work: unknown, signal: AbortSignal) => Promise<void>

/** Runs the jobs of the queue `mail` once each, due or not, and those that they enqueue; returns their outcomes. */
export async function runMails(pod: Services): Promise<readonly string[]> {
  const outcomes: string[] = []
  const done = new Set<number>()
  for (;;) {
    const rows = await pod
      .db('outbox')
      .where({ queue: 'mail', failedAt: null })
      .whereNotIn('id', [...done])
      .orderBy('id')
    if (rows.length === 0) return outcomes
    for (const { id, name } of rows) {
      done.add(id)
      outcomes.push(await runRow(pod, id, name))
    }
  }
}

async function runRow(pod: Services, outboxId: number, name: string): Promise<string> {
  const work = (await loadJob(pod.db, { outboxId })) ?? jobOfRow(pod.db, outboxId, {})
  try {
    const run = (mailHandlers as Readonly<Record<string, unknown>>)[name] as Run
    await run(pod, work, AbortSignal.timeout(10_000))
    await work.finishIfOpen()
    return 'done'
  } catch (error) {
    if (error instanceof Postponed) return 'postponed'
    if (error instanceof FailedJob) return `dead: ${error.fault}`
    const outcome = outcomeOfError(error)
    if (outcome.kind !== 'drop') throw error
    await work.finishIfOpen()
    return `dropped: ${outcome.fault}`
  }
}

/** Gives a user a confirmed e-mail address. */
export async function confirmMailbox(
  pod: Services,
  username: string,
  email = `${username}@mail.example`,
): Promise<number> {
  const [{ id }] = await pod
    .db('users')
    .where({ username })
    .update({ email, emailConfirmedAt: pod.db.fn.now() })
    .returning('id')
  return id
}
