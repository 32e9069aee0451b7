import type { Knex } from 'knex'

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
  const { rows } = await db.raw(takeTurn, { perMinute, probeSeconds })
  if (rows[0] !== undefined) return { mayTry: true, isProbe: rows[0].isProbe }
  const wait = await db.raw(secondsToWait)
  return { mayTry: false, waitSeconds: Math.max(1, wait.rows[0].seconds) }
}

const takeTurn = `
  update mail_transport set
    minute = case when minute <= now() - interval '1 minute' then date_trunc('milliseconds', now()) else minute end,
    sent = case when minute <= now() - interval '1 minute' then 1 else sent + 1 end,
    probe_at = case when failing_since is null then null else now() + make_interval(secs => :probeSeconds) end
  where (failing_since is null or probe_at <= now()) and (minute <= now() - interval '1 minute' or sent < :perMinute)
  returning failing_since is not null as "isProbe"`

const secondsToWait = `
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

/** Notes that the server refuses this pod. True: it did not before. */
export async function recordTransportFailure(
  db: Knex,
  {
    fault,
    code,
    probeSeconds,
  }: { readonly fault: string; readonly code: number | undefined; readonly probeSeconds: number },
): Promise<boolean> {
  const { rows } = await db.raw(
    `update mail_transport set
       failing_since = coalesce(before.failing_since, date_trunc('milliseconds', now())), fault = :fault, code = :code,
       probe_at = now() + make_interval(secs => :probeSeconds)
     from (select failing_since from mail_transport for update) as before
     returning before.failing_since is null as began`,
    { fault, code: code ?? null, probeSeconds },
  )
  return rows[0].began
}

/** Notes that the server accepts mails again. True: it refused them before. */
export async function recordTransportSuccess(db: Knex): Promise<boolean> {
  const ended = await db('mail_transport')
    .whereNotNull('failingSince')
    .update({ failingSince: null, fault: null, code: null, probeAt: null })
  return ended > 0
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
