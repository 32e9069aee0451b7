import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeBase64, decodeBase64url, encodeBase64url } from '../../src/protocol/base64.js'

const bytes = Buffer.from([0xfb, 0xff, 0xfe, 0x3e])

describe('base64url', () => {
  it('is written with padding and without line breaks', () => {
    expect(encodeBase64url(bytes)).toBe('-__-Pg==')
    expect(encodeBase64url(Buffer.alloc(300))).toBe('A'.repeat(400))
  })

  it.each(['-__-Pg==', '-__-Pg', '+//+Pg==', '+//+Pg', '-/_+Pg==', ' -__\r\n-P\tg= =\n'])('is read from %j', (text) =>
    expect(decodeBase64url(text)).toEqual(bytes),
  )

  it.each([
    '-__-P',
    '-__-Pg=',
    '-__-Pg===',
    '=-__-Pg=',
    '-__=-Pg=',
    '-__-Pg==A',
    '-__-?Pg==',
    '-__-Pg§=',
    'é',
    '=',
    '==',
    '-\u00a0_',
    '\0',
  ])('is never %j', (text) => expect(decodeBase64url(text)).toBeUndefined())

  it('decodes any encoded bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.boolean(), (array, padded) => {
        const text = encodeBase64url(Buffer.from(array))
        expect(decodeBase64url(padded ? text : text.replace(/=+$/, ''))).toEqual(Buffer.from(array))
      }),
    )
  })

  it('looks at every character of a long text', () => {
    const long = 'A'.repeat(1_000_000)

    expect(decodeBase64url(long)?.length).toBe(750_000)
    expect(decodeBase64url(`${long}\n`)?.length).toBe(750_000)
    expect(decodeBase64url(`${long.slice(4)}AA*A`)).toBeUndefined()
  })
})

describe('base64', () => {
  it.each(['+//+Pg==', '+//+Pg', '+//+\r\n Pg=='])('is read from %j', (text) =>
    expect(decodeBase64(text)).toEqual(bytes),
  )

  it.each(['-__-Pg==', '+//+P', '+//+Pg=', '+//+Pg==A', '+//+Pg!='])('is never %j', (text) =>
    expect(decodeBase64(text)).toBeUndefined(),
  )
})
