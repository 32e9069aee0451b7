import type { DeliveryPriority } from './delivery-priority.js'

/**
 * SQL: how many more deliveries of a priority may wait for each pod that `pods` selects. Waiting deliveries are counted up to the
 * limit, with the index `deliveries_line`.
 */
export function remainingPodsSql(priority: DeliveryPriority, limit: number, pods: string): string {
  return `
    select targets.pod_id, ${limit} - (
      select count(*) from (
        select from deliveries
        where deliveries.pod_id = targets.pod_id and state = 'waiting' and priority = ${priority}
        limit ${limit}
      ) as waiting
    ) as count
    from (${pods}) as targets`
}
