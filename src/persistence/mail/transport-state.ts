import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { NOW_SQL } from '../sql/database-time.js'

/** Whether the mail server refuses this pod. */
export interface TransportState {
  readonly failingSince: Date | null
  readonly fault: string | null
  readonly code: number | null
  readonly probeAt: Date | null
}

export type SendingTurn =
  | { readonly mayTry: true; readonly isProbe: boolean }
  | { readonly mayTry: false; readonly waitSeconds: number }

/**
 * Takes one of the mails of this minute. While the server refuses this pod, one mail of all processes may try in each `probeSeconds`.
 */
export async function takeSendingTurn(
  db: Knex,
  { perMinute, probeSeconds }: { readonly perMinute: number; readonly probeSeconds: number },
): Promise<SendingTurn> {
  const [turn] = await queryRows<{ readonly isProbe: boolean }>(db, TAKEN_TURN_SQL, { perMinute, probeSeconds })
  if (turn !== undefined) return { mayTry: true, isProbe: turn.isProbe }
  const { seconds } = await queryRow<{ readonly seconds: number }>(db, SECONDS_TO_WAIT_SQL)
  return { mayTry: false, waitSeconds: Math.max(1, seconds) }
}

const TAKEN_TURN_SQL = `
  update mail_transport set
    minute = case when minute <= now() - interval '1 minute' then ${NOW_SQL} else minute end,
    sent = case when minute <= now() - interval '1 minute' then 1 else sent + 1 end,
    probe_at = case when failing_since is null then null else now() + make_interval(secs => :probeSeconds) end
  where (failing_since is null or probe_at <= now()) and (minute <= now() - interval '1 minute' or sent < :perMinute)
  returning failing_since is not null as "isProbe"`

const SECONDS_TO_WAIT_SQL = `
  select ceil(extract(epoch from greatest(
    case when failing_since is not null then probe_at - now() end,
    minute + interval '1 minute' - now()
  )))::integer as seconds from mail_transport`

/** Gives the turn of a mail back that did not have to be sent. */
export async function returnSendingTurn(db: Knex): Promise<void> {
  await db('mail_transport').update({
    sent: db.raw('greatest(0, sent - 1)'),
    probeAt: db.raw('case when failing_since is null then null else now() end'),
  })
}

/** Records that the server refuses this pod. True: it did not before. */
export async function recordTransportFailure(
  db: Knex,
  {
    fault,
    code,
    probeSeconds,
  }: { readonly fault: string; readonly code: number | undefined; readonly probeSeconds: number },
): Promise<boolean> {
  const { hasBegun } = await queryRow<{ readonly hasBegun: boolean }>(
    db,
    `update mail_transport set
       failing_since = coalesce(before.failing_since, ${NOW_SQL}), fault = :fault, code = :code,
       probe_at = now() + make_interval(secs => :probeSeconds)
     from (select failing_since from mail_transport for update) as before
     returning before.failing_since is null as "hasBegun"`,
    { fault, code: code ?? null, probeSeconds },
  )
  return hasBegun
}

/** Records that the server accepts mails again. True: it refused them before. */
export async function recordTransportSuccess(db: Knex): Promise<boolean> {
  const rowCount = await db('mail_transport')
    .whereNotNull('failingSince')
    .update({ failingSince: null, fault: null, code: null, probeAt: null })
  return rowCount > 0
}

/** Lets the next mail try now. */
export async function endTransportPause(db: Knex): Promise<void> {
  await db('mail_transport')
    .whereNotNull('failingSince')
    .update({ probeAt: db.raw('now()') })
}

export async function findTransportState(db: Knex): Promise<TransportState> {
  return db('mail_transport').first('failingSince', 'fault', 'code', 'probeAt')
}
