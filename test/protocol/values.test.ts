import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  codePoints,
  isAcceptedName,
  isBirthday,
  isGuid,
  isUrlWithHost,
  isUrlWithHostAndPath,
  isUrlWithPath,
  isWithinLength,
  readFlag,
  readInteger,
  readTimestamp,
  writeFlag,
  writeInteger,
  writeTimestamp,
} from '../../src/protocol/values.js'

function timestamp(text: string): string | undefined {
  const date = readTimestamp(text)
  return date && writeTimestamp(date)
}

describe('a guid', () => {
  it.each(['804926cc6ceb5310', 'abc-def_ghi@x.y:z1', 'g'.repeat(255)])('may be %s', (text) => {
    expect(isGuid(text)).toBe(true)
  })

  it.each([
    '83f133861545f08',
    'g'.repeat(256),
    '0123456789abcde-',
    '0123456789abcd f0',
    '0123456789abcdé0',
    '804926cc6ceb5310\n',
  ])('is never %j', (text) => expect(isGuid(text)).toBe(false))
})

describe('a timestamp', () => {
  it.each([
    ['2016-02-19T02:13:41Z', '2016-02-19T02:13:41Z'],
    ['2016-02-19 02:13:41 UTC', '2016-02-19T02:13:41Z'],
    ['2016-02-19 02:13:41 GMT', '2016-02-19T02:13:41Z'],
    ['2016-02-19T02:13:41', '2016-02-19T02:13:41Z'],
    ['2016-02-19T02:13:41.999Z', '2016-02-19T02:13:41Z'],
    ['2016-02-19T02:13:41.999999999', '2016-02-19T02:13:41Z'],
    ['2016-02-19T02:13:41+05:30', '2016-02-18T20:43:41Z'],
    ['2016-02-19T02:13:41-0800', '2016-02-19T10:13:41Z'],
    ['2016-02-30T00:00:00Z', '2016-03-01T00:00:00Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z'],
    ['0050-01-01T00:00:00Z', '0050-01-01T00:00:00Z'],
    ['1969-12-31T23:59:59.750Z', '1969-12-31T23:59:59Z'],
  ])('is read from %s as %s', (text, expected) => expect(timestamp(text)).toBe(expected))

  it.each([
    '',
    'garbage',
    'now',
    '2016-02-19',
    '2016-13-01T00:00:00Z',
    '2016-00-01T00:00:00Z',
    '2016-01-32T00:00:00Z',
    '2016-01-01T24:00:00Z',
    '2016-01-01T00:60:00Z',
    '2016-01-01T00:00:61Z',
    '2016-01-01T00:00:00+24:00',
    '2016-01-01T00:00:00+1',
    ' 2016-01-01T00:00:00Z',
    '2016-01-01T00:00:00Z\n',
    '12016-01-01T00:00:00Z',
    '9999-12-31T23:59:59-01:00',
    '0000-01-01T00:00:00+01:00',
  ])('is never %j', (text) => expect(timestamp(text)).toBeUndefined())

  it('is written in one form, which reads back to the same second', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
        (date) => {
          expect(timestamp(writeTimestamp(date))).toBe(writeTimestamp(date))
          expect(readTimestamp(writeTimestamp(date))?.getTime()).toBe(Math.floor(date.getTime() / 1000) * 1000)
        },
      ),
    )
  })
})

describe('a boolean', () => {
  it.each(['true', 'TRUE', 't', 'Yes', 'y', '1'])('is true for %s', (text) => expect(readFlag(text)).toBe(true))
  it.each(['false', 'False', 'F', 'no', 'N', '0'])('is false for %s', (text) => expect(readFlag(text)).toBe(false))
  it.each(['', 'on', 'off', '2', '01', ' true', 'true\n', 'toString'])('has no value for %j', (text) => {
    expect(readFlag(text)).toBeUndefined()
  })
  it('is written in full', () => expect([writeFlag(true), writeFlag(false)]).toEqual(['true', 'false']))
})

describe('an integer', () => {
  it('consists of digits', () => expect(['0', '42', '007'].map(readInteger)).toEqual([0, 42, 7]))
  it.each(['', '-1', '1.5', '12px', ' 1', '1\n', '1e3', '٣', '9'.repeat(400)])('has no value for %j', (text) => {
    expect(readInteger(text)).toBeUndefined()
  })
  it('is written without a sign or an exponent', () => expect(writeInteger(2 ** 53 - 1)).toBe('9007199254740991'))
})

describe('a birthday', () => {
  it.each(['', '1988-07-15', '1004-02-29', '0000-01-01', '0004-02-29'])('may be %j', (text) => {
    expect(isBirthday(text)).toBe(true)
  })
  it.each([
    '2001-02-29',
    '1988-7-15',
    '88-07-15',
    '15.07.1988',
    '1988-00-01',
    '1988-13-01',
    '1988-07-00',
    '1988-07-32',
    ' 1988-07-15',
  ])('is never %j', (text) => expect(isBirthday(text)).toBe(false))
})

describe('a URL', () => {
  it.each([
    // text, host, path
    ['https://p.example/u/1.jpg?x=1#y', true, true],
    ['https://p.example/', true, true],
    ['https://p.example', true, false],
    ['https://p.example?x', true, false],
    ['/assets/user/default.png', false, true],
    ['default.png', false, true],
    ['https:///x', false, true],
    ['?x', false, false],
    ['', false, false],
    ['https://p.example/a b', false, false],
    ['https://p.example/é', false, false],
    ['https://p.example/%zz', false, false],
    ['https://p.example/\n', false, false],
    ['<https://p.example/>', false, false],
  ])('%j has a host: %s, and a path: %s', (text, host, path) => {
    expect([isUrlWithHost(text), isUrlWithPath(text), isUrlWithHostAndPath(text)]).toEqual([host, path, host && path])
  })
})

describe('a length', () => {
  it('counts code points', () => {
    expect([codePoints(''), codePoints('aé'), codePoints('😀😀'), codePoints('\ud800a')]).toEqual([0, 2, 2, 2])
  })

  it('fits up to the last code point', () => {
    expect([
      isWithinLength('😀'.repeat(10), 10),
      isWithinLength('😀'.repeat(11), 10),
      isWithinLength('a'.repeat(11), 10),
      isWithinLength('a'.repeat(10), 10),
    ]).toEqual([true, false, false, true])
  })

  it('and no semicolon make a name', () => {
    expect([
      isAcceptedName('', 3),
      isAcceptedName('Zoë', 3),
      isAcceptedName('Zoë!', 3),
      isAcceptedName('a;b', 3),
    ]).toEqual([true, true, false, false])
  })
})
