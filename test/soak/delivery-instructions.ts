import type { DeliveryLimits } from '../../src/limits.js'

/** What a worker process that delivers is told. */
export interface DeliveryInstructions {
  readonly environment: NodeJS.ProcessEnv
  readonly othersPort: number
  readonly threads: boolean
  /** What differs from the usual ones. */
  readonly limits: Partial<DeliveryLimits>
}

/** Hosts at this port refuse every connection until they are told to be back. */
export const REFUSING_PORT = 3001
