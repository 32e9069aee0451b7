import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readForm } from '../../../src/web/forms/form-body.js'
import { MalformedBody } from '../../../src/web/server/request-faults.js'

/** As JSON would show it: the form has no prototype, so that no name means anything. */
function parseBody(text: string): unknown {
  return JSON.parse(JSON.stringify(readForm(text)))
}

describe('readForm', () => {
  it.each([
    ['', {}],
    ['a=1', { a: '1' }],
    ['a=1&a=2', { a: '2' }],
    ['a', { a: '' }],
    ['a=b+c%2Bd', { a: 'b c+d' }],
    ['tags[]=x&tags[]=y', { tags: ['x', 'y'] }],
    ['tags%5B%5D=x', { tags: ['x'] }],
    ['poll[question]=Why%3F&poll[answers][]=a&poll[answers][]=b', { poll: { question: 'Why?', answers: ['a', 'b'] } }],
    ['a[b][c]=1&a[b][d]=2', { a: { b: { c: '1', d: '2' } } }],
    ['a[=1&b]=2&[c]=3', { 'a[': '1', 'b]': '2', '[c]': '3' }],
    ['a=%ff', { a: '\ufffd' }],
  ])('reads %s', (text, form) => {
    expect(parseBody(text)).toEqual(form)
  })

  it.each(['a=1&a[]=2', 'a[]=1&a[b]=2', 'a[b]=1&a[]=2', 'a=1&a[b]=2', 'a[][b]=1', 'a[b][c][d][e]=1'])(
    'refuses %s, which means nothing',
    (text) => {
      expect(() => readForm(text)).toThrow(MalformedBody)
    },
  )

  it('refuses more fields than any form has', () => {
    expect(() => readForm('a[]=1&'.repeat(1_001))).toThrow(MalformedBody)
  })

  it('takes no name for part of the language', () => {
    const form = readForm('__proto__[polluted]=1&constructor[prototype][polluted]=1&toString=x')

    expect(Object.keys(form)).toEqual(['__proto__', 'constructor', 'toString'])
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  it('reads every encoding that a browser may use for a flat form', () => {
    const name = fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => !/[[\]]/.test(text))
    fc.assert(
      fc.property(fc.dictionary(name, fc.string({ unit: 'grapheme' })), (fields) => {
        expect({ ...readForm(new URLSearchParams(fields).toString()) }).toEqual({ ...fields })
      }),
    )
  })
})
