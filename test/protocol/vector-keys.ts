import type { KeyObject } from 'node:crypto'
import { readPrivateKey, readPublicKey } from '../../src/protocol/signatures/rsa.js'
import type { VectorPerson } from './vectors.js'

interface PersonKeys {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export interface VectorKeys {
  /** Throws for a person who is not in the file or has no usable keys there. */
  of(address: string): PersonKeys
  readonly public: ReadonlyMap<string, KeyObject>
}

/** Whose keys cannot be used has none: the vectors that need them fail, and no others. */
export function readKeys(people: readonly VectorPerson[]): VectorKeys {
  const keys = new Map<string, PersonKeys>()
  for (const person of people) {
    const publicKey = readPublicKey(person.public_key)
    const privateKey = readPrivateKey(person.private_key)
    if (publicKey !== undefined && privateKey !== undefined) keys.set(person.id, { publicKey, privateKey })
  }
  return {
    of(address) {
      const found = keys.get(address)
      if (found === undefined) throw new Error(`there are no usable keys of ${address}`)
      return found
    },
    public: new Map([...keys].map(([address, { publicKey }]) => [address, publicKey])),
  }
}
