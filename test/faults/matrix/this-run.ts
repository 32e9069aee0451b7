import { inject } from 'vitest'
import { randomFrom } from '../../soak/burst-messages.js'

export type Store = 'PostgreSQL' | 'Redis'

declare module 'vitest' {
  interface ProvidedContext {
    /** The store of the queue. */
    store: Store
    /** The seed of this run. */
    seed: number
  }
}

export const store = (): Store => inject('store')

/** A generator of numbers from 0 to 1, determined by the seed. */
export const chance = (): (() => number) => randomFrom(inject('seed'))
