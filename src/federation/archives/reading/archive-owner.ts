import { createPublicKey, type KeyObject } from 'node:crypto'
import { parseAddress } from '../../../protocol/address.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { readPrivateKey, readPublicKey } from '../../../protocol/signatures/rsa.js'

export type ArchiveVersion = '1.0' | '2.0'

/** Whose archive it is. */
export interface ArchiveOwner {
  readonly version: ArchiveVersion
  /** The network ID of the archive. */
  readonly address: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  /** The unchanged members of the profile; version 1.0 is converted to the form of 2.0. */
  readonly profile: Readonly<Record<string, unknown>>
}

/** Reads the essential members: version, owner and key. Throws an `ArchiveError` without them. */
export function readArchiveOwner(values: ReadonlyMap<string, unknown>): ArchiveOwner {
  const version = values.get('version')
  if (version !== '1.0' && version !== '2.0') {
    throw new ArchiveError('unknown_version', 'The version of the archive is neither 1.0 nor 2.0.')
  }
  const profile =
    version === '2.0' ? profileOfVersion2(values.get('user.profile')) : profileOfVersion1(values.get('user.profile'))
  const author = profile['author']
  const address = typeof author === 'string' ? parseAddress(author) : undefined
  if (address === undefined) throw schemaError('/user/profile', 'is not a profile with a network ID')
  const key = values.get(version === '2.0' ? 'user.private_key' : 'user.serialized_private_key')
  const privateKey = typeof key === 'string' ? readPrivateKey(key) : undefined
  if (privateKey === undefined) {
    throw new ArchiveError(
      'key_unusable',
      'The private key of the archive cannot be used: it is missing, encrypted, not RSA, or not between 1024 and 8192 bits.',
    )
  }
  return { version, address, privateKey, publicKey: createPublicKey(privateKey), profile }
}

function profileOfVersion2(profile: unknown): Readonly<Record<string, unknown>> {
  const members = readMembers(readMembers(profile)?.['entity_data'])
  if (members === undefined) throw schemaError('/user/profile/entity_data', 'is missing')
  return members
}

function profileOfVersion1(profile: unknown): Readonly<Record<string, unknown>> {
  const members = readMembers(profile)
  if (members === undefined) throw schemaError('/user/profile', 'is missing')
  return { ...members, author: members['diaspora_handle'] }
}

function schemaError(pointer: string, fault: string): ArchiveError {
  return new ArchiveError('schema', `The member ${pointer} ${fault}.`)
}

/** The members of an object; undefined for any other value. */
export function readMembers(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? (value as Readonly<Record<string, unknown>>) : undefined // every object has members by name
}

/** Compares two keys independently of their text form. A stored key that cannot be read, as of a pod that was taken over, equals none. */
export function isSameKey(key: KeyObject, pem: string): boolean {
  const der = (one: KeyObject) => one.export({ type: 'spki', format: 'der' })
  const storedKey = readPublicKey(pem)
  return storedKey !== undefined && der(key).equals(der(storedKey))
}
