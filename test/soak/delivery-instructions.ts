import type { DeliveryLimits } from '../../src/federation/outbound/limits.js'

/** Instructions for a worker process that delivers. */
export interface DeliveryInstructions {
  readonly environment: NodeJS.ProcessEnv
  readonly othersPort: number
  readonly threads: boolean
  /** Settings that differ from the default. */
  readonly limits: Partial<DeliveryLimits>
}

/** Hosts at this port refuse every connection until a message ends the outage. */
export const REFUSING_PORT = 3001
