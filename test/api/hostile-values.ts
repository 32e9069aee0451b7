import fc from 'fast-check'
import { anyText } from '../protocol/arbitrary-entities.js'

/** Something else than the usual, rarely. */
export function seldom<Value>(usual: fc.Arbitrary<Value>, other: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: other })
}

export const LONE_SURROGATE = /[\ud800-\udfff]/u

/** One that is not written out of existence: `.` and `..` are taken for steps, and nothing for the end of the path. */
export const segment = anyText(1, 300).filter((text) => !/^\.{0,2}$/.test(text) && !LONE_SURROGATE.test(text))

/** Values of path parameters without any encoding. */
export const oddSegments = [
  '%',
  '%zz',
  '%ff%fe',
  '%ED%A0%80',
  '%00',
  '..%2f..',
  '%2F',
  '*',
  ':guid',
  'a'.repeat(301),
  '%F0%9F',
]

/** Bodies that are not JSON, not an object, or too large. */
export const unreadable = [
  '{',
  '[]',
  'null',
  '"x"',
  '',
  ' ',
  '{"a":}',
  '{"body":"\\ud800"}',
  '{"body":"\\u0000"}',
  '{"a":1e999}',
].concat(
  '['.repeat(100_000),
  '{"a":'.repeat(50_000),
  `{"body":"${'x'.repeat(1_050_000)}"}`,
  '{"__proto__":{"x":1},"constructor":{"prototype":{"y":1}}}',
  `a${'[b]'.repeat(20)}=1&a[]=2&a=3`,
  'a[]=1&'.repeat(1_001),
)

/** One dot. */
const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Files of an upload, half of them pictures. */
export const pictures: fc.Arbitrary<Buffer> = fc.oneof(
  fc.constant(PICTURE),
  fc.constantFrom(
    Buffer.alloc(0),
    PICTURE.subarray(0, 40),
    Buffer.concat([PICTURE, Buffer.from('<script>alert(1)</script>')]),
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'),
    Buffer.from('GIF89a'),
    Buffer.alloc(200_000, 'x'),
  ),
)

export const times = fc.oneof(
  fc
    .date({ min: new Date('2020-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  fc.date({ min: new Date(-1), noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom(
    '2025-03-01',
    '0000-01-01',
    '9999-12-31T23:59:60.999999-23:59',
    '2025-03-01T08:15:30 02:00',
    '1e9',
    'now',
  ),
)

export const goodTexts = fc.constantFrom('Good morning', '@{bob@pod.example} #tea', '@{x; nobody@nowhere.example}', 'x')

export const longTexts = fc.constantFrom(
  ...[255, 256, 1_025, 65_535, 65_536].flatMap((length) => ['x'.repeat(length), '🦊'.repeat(length)]),
)

export const hostileNames = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'access_token',
  'length',
  '$ref',
  '',
  'a[b',
  'id',
  'guid',
]

const hostileTexts = fc.constantFrom(
  '\0',
  'a\u0000b',
  '\ud800',
  'a\udfffb',
  '\uffff',
  "'; drop table posts; --",
  '" or 1=1 --',
  '%',
  '\\',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '../../etc/passwd',
  'http://127.0.0.1:22/',
  'null',
  'NaN',
  '-0',
  '1e400',
  '9'.repeat(400),
  '@{'.repeat(5_000),
  '#'.repeat(5_000),
  `${'('.repeat(2_000)}${')'.repeat(2_000)}`,
  `@{a; ${'a'.repeat(5_000)}@b}`,
  '\u202e\u200b\u2028',
  '\r\nSet-Cookie: x=1',
)

/** Of any type. */
export const anything: fc.Arbitrary<unknown> = fc.oneof(
  hostileTexts,
  anyText(0, 40),
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    -1,
    1.5,
    1e300,
    2 ** 31,
    2 ** 53,
    2 ** 63,
    '',
    [],
    {},
    [[]],
    [null],
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.array(fc.oneof(hostileTexts, fc.nat()), { maxLength: 200 }),
  fc.jsonValue(),
  fc.constantFrom(...hostileNames).map((name) => Object.fromEntries([[name, { x: 1 }]])),
)

export const oddHeaders = fc.constantFrom<Record<string, string>>(
  { 'content-type': 'text/plain' },
  { 'content-type': 'application/json; charset=utf-16' },
  { 'content-type': 'application/json;;;' },
  { 'content-type': 'multipart/form-data' },
  { 'content-type': 'multipart/form-data; boundary=x' },
  { 'content-type': 'x' },
  { 'content-type': '' },
  { 'content-type': 'application/x-www-form-urlencoded' },
  { 'content-type': 'APPLICATION/JSON' },
  { 'content-encoding': 'gzip' },
  { 'content-encoding': 'identity' },
  { accept: 'text/html' },
  { accept: 'image/png;q=2' },
  { 'accept-language': 'x'.repeat(4_000) },
  { 'x-http-method-override': 'DELETE' },
  { 'if-none-match': '*' },
  { range: 'bytes=0-1' },
  { origin: 'null' },
  { 'x-request-id': '\u00e9' },
  { 'idempotency-key': 'one' },
  { 'idempotency-key': '' },
  { 'idempotency-key': 'x'.repeat(256) },
)
