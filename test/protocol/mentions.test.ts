import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAddress } from '../../src/protocol/address.js'
import { readLinks, readMentions, readTags } from '../../src/protocol/mentions.js'

const guid = '74906d59ce6025a98b7d4c253fae8c80'

describe('a mention', () => {
  it('names a person, with or without a display name', () => {
    expect(readMentions('hi @{ann@p.example}, @{Ben B.; ben@p.example:3000}!')).toEqual([
      { address: 'ann@p.example', name: undefined },
      { address: 'ben@p.example:3000', name: 'Ben B.' },
    ])
  })

  it('may have anything but a closing brace in the name, which ends at the last semicolon', () => {
    expect(readMentions('@{a; b{c @ ü; ann@p.example}')).toEqual([{ address: 'ann@p.example', name: 'a; b{c @ ü' }])
  })

  it('is found after a mention that is not closed or not valid', () => {
    for (const start of ['@{ben ', '@{}', '@{ben@p.example ', '@{Ann ben@p.example} ', '} @{ ']) {
      expect(readMentions(`${start}@{ann@p.example}`)).toEqual([{ address: 'ann@p.example', name: undefined }])
    }
  })

  it('is plain text if it contains no address', () => {
    expect(
      readMentions('@{} @{ann} @{Ann;ann@p.example} @{Ann ann@p.example} @ {ann@p.example} @{ann@p.example'),
    ).toEqual([])
  })
})

describe('a link', () => {
  it('names author, type and guid of an entity', () => {
    expect(readLinks(`web+diaspora://ann@p.example/status_message/${guid}.`)).toEqual([
      { author: 'ann@p.example', type: 'status_message', guid },
    ])
  })

  it('has the author, a slash, the type, a slash and a guid, and nothing in between', () => {
    for (const rest of [
      `p.example/post/${guid}`,
      'ann@p.example',
      `ann@p.example/Post/${guid}`,
      'ann@p.example/post/x',
    ]) {
      expect(readLinks(`diaspora://${rest} `)).toEqual([])
    }
  })

  it('ends with a letter or digit, and is plain text if its guid is too long', () => {
    expect(readLinks(`diaspora://ann@p.example/post/${guid}-_.:@`)).toMatchObject([{ guid }])
    expect(readLinks(`diaspora://ann@p.example/post/${'a'.repeat(256)}`)).toEqual([])
  })
})

describe('a tag', () => {
  it('begins the text or follows a blank, and counts once, in lower case', () => {
    expect(readTags('#One x#two #three-four_5\n#ONE #ünï #<3 #<33 # ##x (#y)')).toEqual([
      'one',
      'three-four_5',
      'ünï',
      '<3',
    ])
  })
})

/** What the contract gives as a pattern; it takes quadratic time for some texts, so it only stands here to compare with. */
const mentionPattern = /@\{(?:([^}]+?); )?([^} ]+)\}/g

it('finds the mentions that the pattern of the network finds', () => {
  const pieces = fc.constantFrom('@{', '}', '; ', ' ', ';', 'ann@p.example', 'ben@q.example', 'x', '@', '{', '\n')
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 14 }).map((parts) => parts.join('')),
      (text) => {
        const expected = [...text.matchAll(mentionPattern)].map(([, , id]) => id)
        const addresses = expected.map((id) => parseAddress(id ?? '')).filter((address) => address !== undefined)
        expect(readMentions(text).map(({ address }) => address)).toEqual(addresses)
      },
    ),
    { numRuns: 5_000 },
  )
})
