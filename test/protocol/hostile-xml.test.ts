import { expect, it } from 'vitest'
import { readXml } from '../../src/protocol/xml/xml.js'

const megabytes = 1024 * 1024

// The reason shows where reading stopped: the time it takes is bounded because it stops there.
it.each([
  ['an internal entity', () => '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'document type'],
  ['an external entity', () => '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', 'document type'],
  ['entities that grow', () => `<!DOCTYPE a [${growingEntities()}]><a>&e9;</a>`, 'document type'],
  [
    'a document type of 3 MiB',
    () => `<!DOCTYPE a [${' '.repeat(3 * megabytes)}]><a/>`,
    'no element near its beginning',
  ],
  ['a document type behind a comment', () => '<!-- c --><!DOCTYPE a><a/>', 'document type'],
  ['20 000 levels', () => '<a>'.repeat(20_000) + '</a>'.repeat(20_000), 'too deep'],
  ['33 levels', () => '<a>'.repeat(33) + '</a>'.repeat(33), 'too deep'],
  ['200 000 levels that declare a namespace', () => '<a xmlns="u">'.repeat(200_000), 'too deep'],
  ['200 000 elements', () => `<a>${'<b/>'.repeat(200_000)}</a>`, 'too many elements'],
  ['200 000 attributes of one element', () => `<a ${attributes(200_000)}/>`, 'too many attributes'],
  [
    '200 000 attributes of many elements',
    () => `<a>${`<b ${attributes(20)}/>`.repeat(10_000)}</a>`,
    'too many attributes',
  ],
  ['1 001 attributes', () => `<a ${attributes(500)}><b ${attributes(501)}/></a>`, 'too many attributes'],
  ['20 001 elements', () => `<a>${'<b/>'.repeat(20_000)}</a>`, 'too many elements'],
  ['4 MiB and one more', () => `<a>${'x'.repeat(4 * megabytes - 6)}</a>`, 'too long'],
  ['8 MiB of text', () => `<a>${'x'.repeat(8 * megabytes)}</a>`, 'too long'],
  ['8 MiB of bytes', () => Buffer.alloc(8 * megabytes, 'x'), 'too long'],
  ['3 MiB of blanks before the root', () => `${' '.repeat(3 * megabytes)}<a/>`, 'no element near its beginning'],
  ['a name of 3 MiB', () => `<${'a'.repeat(3 * megabytes)}/>`, 'no element near its beginning'],
])('stops at %s', (_what, source, reason) => {
  expect(() => readXml(source(), 'InvalidPayload')).toThrow(
    expect.objectContaining({ fault: 'InvalidPayload', message: expect.stringContaining(reason) }),
  )
})

it('reads documents just within the bounds', () => {
  const deep = '<a>'.repeat(32) + '</a>'.repeat(32)
  const wide = `<a>${'<b>c</b>'.repeat(19_999)}</a>`
  const decorated = `<a ${attributes(500)}><b ${attributes(500)}/></a>`
  const full = `<a>${'x'.repeat(4 * megabytes - 7)}</a>`
  const long = `<a>${'&#x1F600;'.repeat(65_535)}</a>`

  expect(readXml(deep, 'InvalidPayload').children).toHaveLength(1)
  expect(readXml(wide, 'InvalidPayload').children).toHaveLength(19_999)
  expect(readXml(decorated, 'InvalidPayload').attributes.size).toBe(500)
  expect(readXml(full, 'InvalidPayload').text).toHaveLength(4 * megabytes - 7)
  expect(readXml(long, 'InvalidPayload').text).toBe('😀'.repeat(65_535))
})

function growingEntities(): string {
  const each = (level: number) => `<!ENTITY e${level} "${`&e${level - 1};`.repeat(10)}">`
  return `<!ENTITY e0 "lol">${Array.from({ length: 9 }, (_, index) => each(index + 1)).join('')}`
}

function attributes(count: number): string {
  return Array.from({ length: count }, (_, index) => `a${index}=""`).join(' ')
}
