import { inject } from 'vitest'
import { randomFrom } from '../../soak/burst-messages.js'

export type Store = 'PostgreSQL' | 'Redis'

declare module 'vitest' {
  interface ProvidedContext {
    /** What carries the queue. */
    store: Store
    /** What chance follows in this run. */
    seed: number
  }
}

export const store = (): Store => inject('store')

/** The same numbers, from 0 to 1, for the same seed. */
export const chance = (): (() => number) => randomFrom(inject('seed'))
