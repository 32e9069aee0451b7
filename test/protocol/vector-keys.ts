import type { KeyObject } from 'node:crypto'
import { readPrivateKey, readPublicKey } from '../../src/protocol/rsa.js'
import type { VectorPerson } from './vectors.js'

interface PersonKeys {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export interface VectorKeys {
  /** Throws for somebody who is not among the people of the file. */
  of(address: string): PersonKeys
  readonly public: ReadonlyMap<string, KeyObject>
}

export function readKeys(people: readonly VectorPerson[]): VectorKeys {
  const keys = new Map(
    people.map((person) => {
      const publicKey = readPublicKey(person.public_key)
      const privateKey = readPrivateKey(person.private_key)
      if (publicKey === undefined || privateKey === undefined) throw new Error(`${person.id} has no usable keys`)
      return [person.id, { publicKey, privateKey }]
    }),
  )
  return {
    of(address) {
      const found = keys.get(address)
      if (found === undefined) throw new Error(`nobody is called ${address}`)
      return found
    },
    public: new Map([...keys].map(([address, { publicKey }]) => [address, publicKey])),
  }
}
