import { Model } from 'objection'

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
  /** In a row. */
  declare failures: number
  /** Nothing is sent before; null: nothing stands in the way. */
  declare nextTryAt: Date | null
  declare offlineSince: Date | null
  declare lastSuccessAt: Date | null
  declare checkedAt: Date | null
  /** It was heard of while it was offline. */
  declare checkWanted: boolean
  declare blockedAt: Date | null
  /** What was not stored because the pod was asleep. */
  declare skippedDeliveries: number
  declare createdAt: Date
}
