import type { Knex } from 'knex'
import { raw } from 'objection'
import { queryRow, queryRows } from '../database/database.js'
import { NOW_SQL } from '../sql/database-time.js'
import { Model } from './model.js'

export type PodCheckStatus =
  | 'unchecked'
  | 'no_errors'
  | 'dns_failed'
  | 'net_failed'
  | 'ssl_failed'
  | 'http_failed'
  | 'version_failed'
  | 'unknown_error'

/** A step of a connection to a pod. */
export interface ProbeStep {
  readonly step: 'dns' | 'address' | 'tcp' | 'tls' | 'http'
  readonly ok: boolean
  readonly ms: number
  /** The finding, or the reason of the failure. Parts of it come from the other pod. */
  readonly detail: string
  /** For the step `tls`: when the certificate expires, in ISO 8601. */
  readonly certificateEndsAt?: string
}

/** The last probe on request of an operator. */
export interface PodProbe {
  readonly at: string
  readonly steps: readonly ProbeStep[]
}

/** A remote pod and its health, the circuit breaker of all requests to it. This pod has no row. */
export class RemotePod extends Model {
  static override tableName = 'pods'

  declare id: number
  declare host: string
  /** 443 stands for both default ports. */
  declare port: number
  /** True once an https address was seen; it stays true. */
  declare ssl: boolean
  declare status: PodCheckStatus
  declare lastError: string | null
  /** Software name and version from NodeInfo; null: unknown. */
  declare software: string | null
  declare softwareVersion: string | null
  /** The operator, as NodeInfo names them: a user name or an address. */
  declare adminAccount: string | null
  /** Consecutive failures. */
  declare failures: number
  /** Earliest time of the next request; null: no restriction. */
  declare nextTryAt: Date | null
  declare offlineSince: Date | null
  /** When an operator put it to sleep. Valid until the pod is online again. */
  declare asleepAt: Date | null
  declare lastSuccessAt: Date | null
  /** The first delivery that it has answered with any HTTP status. */
  declare answeredAt: Date | null
  /** The first participation that it has accepted. */
  declare participationAt: Date | null
  declare checkedAt: Date | null
  /** A message arrived from the pod while it was offline, so a check is due. */
  declare checkWanted: boolean
  /** `blockedAt` and `limitedAt` follow the rules of the operator. */
  declare blockedAt: Date | null
  declare limitedAt: Date | null
  /** An admin has paused deliveries and fetches until then. */
  declare pausedUntil: Date | null
  /** Deliveries in a row that were answered with a redirect. */
  declare redirects: number
  /** The process that holds the lease for deliveries, and the end of the lease. */
  declare drainedBy: string | null
  declare drainedUntil: Date | null
  /** Number of deliveries that were not stored because the pod was asleep. */
  declare skippedDeliveries: number
  /** Null: no operator has probed the pod. */
  declare probe: PodProbe | null
  declare createdAt: Date

  /** Finds the pod at host and port, or inserts it. `ssl` stays true once https was seen. */
  static async findOrInsert(
    transaction: Knex.Transaction,
    place: PodHost & { readonly ssl: boolean },
  ): Promise<RemotePod> {
    return this.query(transaction)
      .insert({ host: place.host, port: place.port, ssl: place.ssl })
      .onConflict(['host', 'port'])
      .merge({ ssl: raw('pods.ssl or excluded.ssl') })
      .returning('*')
  }

  /** Requests a check of the offline pods of these people, who have sent a message, and makes their next delivery due. */
  static async requestChecks(transaction: Knex.Transaction, addresses: readonly string[]): Promise<void> {
    await transaction.raw(
      `update pods set check_wanted = true, next_try_at = ${NOW_SQL}
       where id in (
         select pods.id from pods join people on people.pod_id = pods.id
         where people.address = any(?) and pods.offline_since is not null and not pods.check_wanted
         order by pods.id
       )`,
      [[...addresses]],
    )
  }

  /** True if a rule blocks pods at host and port, known or not. */
  static async isBlocked(db: Knex, { host, port }: PodHost): Promise<boolean> {
    const rule = await queryRow<{ readonly blocked: boolean | null }>(
      db,
      `select pod_rule_state(?, ?) = 'blocked' as blocked`,
      [host, port],
    )
    return rule.blocked === true
  }

  /** Seconds until the end of the pause of the pod at this host, which may have a port; undefined: it is not paused. */
  static async secondsOfPause(db: Knex, place: string): Promise<number | undefined> {
    const [pause] = await queryRows<{ readonly seconds: number }>(
      db,
      `select ceil(extract(epoch from paused_until - now()))::integer as seconds from pods
       where host = ? and port = ? and paused_until > now()`,
      [place.replace(/:[0-9]+$/, ''), Number(/:([0-9]{1,5})$/.exec(place)?.[1] ?? 443)],
    )
    return pause?.seconds
  }

  /** Returns the addresses whose pods are blocked, with one statement. */
  static async findBlockedAddresses(
    db: Knex,
    homes: readonly (PodHost & { readonly address: string })[],
  ): Promise<readonly string[]> {
    if (homes.length === 0) return []
    const rows = await queryRows<{ readonly address: string }>(
      db,
      `select distinct address from unnest(?::text[], ?::text[], ?::integer[]) as home(address, host, port)
       where pod_rule_state(home.host, home.port) = 'blocked'`,
      [homes.map(({ address }) => address), homes.map(({ host }) => host), homes.map(({ port }) => port)],
    )
    return rows.map(({ address }) => address)
  }
}

/** Identity of a pod. 443 stands for both default ports. */
export interface PodHost {
  readonly host: string
  readonly port: number
}
