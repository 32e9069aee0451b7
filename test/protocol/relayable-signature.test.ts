import { generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readEntity, writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { ReceivedEntity } from '../../src/protocol/entities/registry.js'
import { listElements } from '../../src/protocol/entities/relayable-elements.js'
import type { Elements, Relayable } from '../../src/protocol/entities/relayables.js'
import { signedText, signRelayable, verifyRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { cleanText, readXml, writeXml } from '../../src/protocol/xml/xml.js'
import { arbitraryRelayable, foreignElements } from './arbitrary-entities.js'

const receivedAt = new Date('2024-05-06T07:08:09Z')
const author = generateKeyPairSync('rsa', { modulusLength: 1_024 })
const otherKeys = generateKeyPairSync('rsa', { modulusLength: 1_024 })

const elements: Elements = [
  ['author', 'alma@meadow.example'],
  ['guid', '0123456789abcdef'],
  ['parent_guid', 'fedcba9876543210'],
  ['text', '  one; two\r\n'],
  ['created_at', '2024-05-06T07:08:09Z'],
]

function signatureOver(text: string, key = author.privateKey): string {
  return sign('sha256', Buffer.from(text), key).toString('base64')
}

function read(type: Relayable['type'], sent: Elements, signature?: string): Relayable {
  const content = sent.map(([name, text]) => ({ name, content: text }))
  if (signature !== undefined) content.push({ name: 'author_signature', content: signature })
  return readRelayable(writeXml({ name: type, content }))
}

function readRelayable(payload: string): Relayable {
  const entity: ReceivedEntity = readEntity(readXml(payload, 'InvalidPayload'), receivedAt)
  if (!('elements' in entity)) throw new Error('not a relayable')
  return entity
}

describe('the text that the author of a relayable signs', () => {
  it('is the text of all elements in the order they were sent, joined by semicolons', () => {
    const comment = read('comment', [['mood', 'a;b'], ...[...elements].reverse(), ['empty', '']], 'x')

    expect(signedText(listElements(comment))).toBe(
      'a;b;2024-05-06T07:08:09Z;  one; two\r\n;fedcba9876543210;0123456789abcdef;alma@meadow.example;',
    )
  })

  it('leaves out every element with "signature" in its name, and all but the first of equal names', () => {
    const sent: Elements = [['parent_author_signature', 'p'], ...elements, ['text', 'later'], ['my_signature_x', 'q']]

    expect(listElements(read('comment', sent, 'x'))).toEqual(elements)
  })

  it('has the order of the table for own entities, with the characters that other pods read', () => {
    const text = 'a\u0001b'
    const common = { author: 'alma@meadow.example', guid: '0123456789abcdef', parent_guid: 'fedcba9876543210' }

    const comment = { type: 'comment', ...common, text, created_at: receivedAt } as const
    expect(listElements(comment).map(([name]) => name)).toEqual(['author', 'guid', 'parent_guid', 'text', 'created_at'])
    expect(listElements(comment)[3]).toEqual(['text', 'a\ufffdb'])

    const like = { type: 'like', ...common, parent_type: 'Post', positive: true } as const
    expect(listElements(like).map(([name]) => name)).toEqual([
      'author',
      'guid',
      'parent_guid',
      'parent_type',
      'positive',
    ])
  })
})

describe('the signature of the author', () => {
  it('fits received texts, the signature with line breaks or without', () => {
    const signature = signatureOver(signedText(elements))

    expect(verifyRelayable(read('comment', elements, signature), author.publicKey)).toBe(true)
    expect(verifyRelayable(read('comment', elements, signature.replace(/.{60}/g, '$&\n')), author.publicKey)).toBe(true)
  })

  it('fits as well when it was made over timestamps and booleans in their one form', () => {
    const sent: Elements = [...elements.slice(0, 4), ['created_at', '2024-05-06T07:08:09.250Z']]
    expect(verifyRelayable(read('comment', sent, signatureOver(signedText(elements))), author.publicKey)).toBe(true)
    expect(verifyRelayable(read('comment', sent, signatureOver(signedText(sent))), author.publicKey)).toBe(true)

    const like: Elements = [...elements.slice(0, 3), ['parent_type', 'Post'], ['positive', 'Yes']]
    const canonical = signedText([...like.slice(0, 4), ['positive', 'true']])
    expect(verifyRelayable(read('like', like, signatureOver(canonical)), author.publicKey)).toBe(true)
  })

  it('never fits a changed text, another order, another key, or no signature at all', () => {
    const signature = signatureOver(signedText(elements))
    const [first, second, ...rest] = elements
    if (first === undefined || second === undefined) throw new Error('too few elements')

    const trimmed: Elements = elements.map(([name, text]) => [name, text.trim()])
    expect(verifyRelayable(read('comment', trimmed, signature), author.publicKey)).toBe(false)
    expect(verifyRelayable(read('comment', [second, first, ...rest], signature), author.publicKey)).toBe(false)
    expect(verifyRelayable(read('comment', [...elements, ['x', '']], signature), author.publicKey)).toBe(false)
    expect(verifyRelayable(read('comment', elements, signature), otherKeys.publicKey)).toBe(false)
    expect(verifyRelayable(read('comment', elements), author.publicKey)).toBe(false)
    expect(verifyRelayable(read('comment', elements, ''), author.publicKey)).toBe(false)
    expect(verifyRelayable(read('comment', elements, ' \n '), author.publicKey)).toBe(false)
  })

  it('is not accepted in the URL-safe alphabet', () => {
    const [sent, signature] = signedWithPlusOrSlash()
    const urlSafe = signature.replaceAll('+', '-').replaceAll('/', '_')

    expect(verifyRelayable(read('comment', sent, signature), author.publicKey)).toBe(true)
    expect(verifyRelayable(read('comment', sent, urlSafe), author.publicKey)).toBe(false)
  })

  it('is valid for own entities after other pods have read them', () => {
    fc.assert(
      fc.property(arbitraryRelayable, (relayable) => {
        const signed = { ...relayable, author_signature: signRelayable(relayable, author.privateKey) }
        expect(verifyRelayable(readRelayable(writeEntity(signed)), author.publicKey)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  it('stays valid when it is relayed, in any order and with any unknown elements', () => {
    const sent = fc
      .tuple(arbitraryRelayable, foreignElements)
      .chain(([relayable, foreign]) =>
        fc.tuple(fc.constant(relayable), shuffledElements([...listElements(relayable), ...foreign])),
      )
    fc.assert(
      fc.property(sent, ([relayable, all]) => {
        const texts = all.map(([name, text]): [string, string] => [name, cleanText(text)])
        const received = read(relayable.type, texts, signatureOver(signedText(texts)))
        expect(verifyRelayable(received, author.publicKey)).toBe(true)

        const relayed = readRelayable(writeEntity(received))
        expect(listElements(relayed)).toEqual(texts)
        expect(relayed.author_signature).toBe(received.author_signature)
        expect(verifyRelayable(relayed, author.publicKey)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})

function shuffledElements(all: Elements): fc.Arbitrary<Elements> {
  return fc.shuffledSubarray([...all], { minLength: all.length })
}

/** Nearly every signature has one of the characters in which the two alphabets differ; this one has for sure. */
function signedWithPlusOrSlash(): [Elements, string] {
  for (let attempt = 0; ; attempt += 1) {
    const sent: Elements = [...elements, ['attempt', String(attempt)]]
    const signature = signatureOver(signedText(sent))
    if (/[+/]/.test(signature)) return [sent, signature]
  }
}
