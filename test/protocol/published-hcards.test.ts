import { describe, expect, it } from 'vitest'
import { type Hcard, readHcard } from '../../src/protocol/discovery/discovery-documents.js'
import { type HcardValues, publishedHcards } from '../support/federation/published-hcards.js'
import { readKey } from '../support/pods/fixed-key-crypto.js'

const publicKey = readKey('1.public.pem')

const alice = {
  guid: '7dba7ca01d64013485eb3131731751e9',
  nickname: 'alice',
  fullName: 'Alice Smith',
  firstName: 'Alice',
  lastName: 'Smith',
  searchable: 'true',
  publicKey,
  large: 'https://pod.example/l.jpg',
  medium: 'https://pod.example/m.jpg',
  small: 'https://pod.example/s.jpg',
} satisfies HcardValues

const read: Hcard = {
  guid: alice.guid,
  publicKey: publicKey.trim(),
  nickname: 'alice',
  fullName: 'Alice Smith',
  firstName: 'Alice',
  lastName: 'Smith',
  searchable: true,
  imageUrl: alice.large,
  imageUrlMedium: alice.medium,
  imageUrlSmall: alice.small,
}

/** Without the field, as an empty element, and what is read then. */
const mayBeEmpty: readonly (readonly [keyof HcardValues, Partial<Hcard>])[] = [
  ['nickname', { nickname: '' }],
  ['firstName', { firstName: '' }],
  ['lastName', { lastName: '' }],
  ['searchable', { searchable: false }],
]

describe.each(Object.entries(publishedHcards))('the hCard of %s', (_software, page) => {
  it('is read', () => expect(readHcard(page(alice))).toEqual(read))

  it('is read of a person without a name', () => {
    const nameless = { ...alice, fullName: '', firstName: '', lastName: '' }

    expect(readHcard(page(nameless))).toEqual({ ...read, fullName: '', firstName: '', lastName: '' })
  })

  it.each(mayBeEmpty)('is read with an empty %s, and without it', (field, expected) => {
    expect(readHcard(page({ ...alice, [field]: '' }))).toEqual({ ...read, ...expected })
    const { [field]: _, ...without } = alice
    expect(readHcard(page(without))).toEqual({ ...read, ...expected })
  })

  it.each(['guid', 'fullName', 'publicKey', 'large', 'medium', 'small'] as const)('fails without %s', (field) => {
    const { [field]: _, ...without } = alice

    expect(() => readHcard(page(without))).toThrow(expect.objectContaining({ fault: 'DiscoveryFailed' }))
  })
})
