import type { Knex } from 'knex'
import { raw } from 'objection'
import { Model } from './model.js'

export type PodStatus =
  | 'unchecked'
  | 'no_errors'
  | 'dns_failed'
  | 'net_failed'
  | 'ssl_failed'
  | 'http_failed'
  | 'version_failed'
  | 'unknown_error'

/** Another pod, and how it is: the breaker of everything that goes out to it. This pod has no row. */
export class Pod extends Model {
  static override tableName = 'pods'

  declare id: number
  declare host: string
  /** 443 stands for both default ports. */
  declare port: number
  /** True once an https address was seen, for good. */
  declare ssl: boolean
  declare status: PodStatus
  declare lastError: string | null
  /** What it says it runs, with the version; null: it has not said so. */
  declare software: string | null
  declare softwareVersion: string | null
  /** In a row. */
  declare failures: number
  /** Nothing is sent before; null: nothing stands in the way. */
  declare nextTryAt: Date | null
  declare offlineSince: Date | null
  /** When an operator has put it to sleep; it counts until the pod is back. */
  declare asleepAt: Date | null
  declare lastSuccessAt: Date | null
  /** The first delivery that it has answered with any HTTP status. */
  declare answeredAt: Date | null
  /** The first participation that it has accepted. */
  declare participationAt: Date | null
  declare checkedAt: Date | null
  /** It was heard of while it was offline. */
  declare checkWanted: boolean
  declare blockedAt: Date | null
  /** Deliveries in a row that were answered with a redirect. */
  declare redirects: number
  /** The process that delivers to it, and until when all others leave it alone. */
  declare drainedBy: string | null
  declare drainedUntil: Date | null
  /** What was not stored because the pod was asleep. */
  declare skippedDeliveries: number
  declare createdAt: Date

  /** The pod at this place, remembered from now on if it is new. Https that was seen once counts for good. */
  static async findOrInsert(transaction: Knex.Transaction, place: PodHost & { readonly ssl: boolean }): Promise<Pod> {
    return this.query(transaction)
      .insert({ host: place.host, port: place.port, ssl: place.ssl })
      .onConflict(['host', 'port'])
      .merge({ ssl: raw('pods.ssl or excluded.ssl') })
      .returning('*')
  }

  /** A message has come from these people: those of their pods that are offline are worth a look, and their next try is due. */
  static async requestChecks(transaction: Knex.Transaction, addresses: readonly string[]): Promise<void> {
    await transaction.raw(
      `update pods set check_wanted = true, next_try_at = date_trunc('milliseconds', now())
       where id in (
         select pods.id from pods join people on people.pod_id = pods.id
         where people.address = any(?) and pods.offline_since is not null and not pods.check_wanted
         order by pods.id
       )`,
      [[...addresses]],
    )
  }

  /** The operator wants nothing to do with the pod at this place. */
  static async isBlocked(db: Knex, { host, port }: PodHost): Promise<boolean> {
    const hosts = [host, host.replace(/^www\./, '')]
    const found = await this.query(db).findOne({ port }).whereIn('host', hosts).whereNotNull('blockedAt').select('id')
    return found !== undefined
  }

  /** The addresses of those whose pods are blocked, with one statement. */
  static async findBlockedAddresses(
    db: Knex,
    homes: readonly (PodHost & { readonly address: string })[],
  ): Promise<readonly string[]> {
    if (homes.length === 0) return []
    const { rows } = await db.raw(
      `select distinct address from unnest(?::text[], ?::text[], ?::integer[]) as home(address, host, port)
       join pods on pods.host in (home.host, regexp_replace(home.host, '^www\\.', '')) and pods.port = home.port
       where pods.blocked_at is not null`,
      [homes.map(({ address }) => address), homes.map(({ host }) => host), homes.map(({ port }) => port)],
    )
    return rows.map(({ address }: { address: string }) => address)
  }
}

/** What tells pods apart; 443 stands for both default ports. */
export interface PodHost {
  readonly host: string
  readonly port: number
}
