import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cleanText, isCleanText, readXml, writeXml } from '../../src/protocol/xml/xml.js'
import type { XmlElement } from '../../src/protocol/xml/xml-element.js'

function read(source: string | Uint8Array): XmlElement {
  return readXml(source, 'InvalidPayload')
}

function bytes(...parts: (string | number)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from([part]))))
}

describe('reading', () => {
  it('gives the text to the letter, without trimming or guessing', () => {
    const comment = read('<comment><text>  0012 \n\t</text><guid>0123456789012345</guid></comment>')

    expect(comment.children.map(({ name, text }) => [name, text])).toEqual([
      ['text', '  0012 \n\t'],
      ['guid', '0123456789012345'],
    ])
  })

  it('turns raw line ends into line feeds and keeps written carriage returns', () => {
    expect(read('<text>a\r\nb\rc&#xD;&#13;\n</text>').text).toBe('a\nb\nc\r\r\n')
  })

  it('resolves references and CDATA and skips comments and instructions', () => {
    const source =
      '<t>&lt;&gt;&amp;&quot;&apos;&#x1F600;&#233;<!-- no --><![CDATA[<b>&amp;]]]]><![CDATA[>]]><?no way?>!</t>'

    expect(read(source).text).toBe('<>&"\'😀é<b>&amp;]]>!')
  })

  it('joins the text of nested elements in document order', () => {
    const element = read('<a>1<b>2<c>3</c></b>4<b/>5</a>')

    expect(element.text).toBe('12345')
    expect(element.children[0]?.text).toBe('23')
  })

  it('resolves namespaces by prefix and by default', () => {
    const env = read('<me:env xmlns:me="urn:a" xmlns="urn:b"><x/><me:y z="1"/><q xmlns=""/></me:env>')

    expect(env).toMatchObject({ name: 'env', namespace: 'urn:a' })
    expect(env.children.map(({ name, namespace }) => [name, namespace])).toEqual([
      ['x', 'urn:b'],
      ['y', 'urn:a'],
      ['q', ''],
    ])
    expect(env.children[1]?.attributes.get('z')).toBe('1')
  })

  it('takes names that objects have of their own for ordinary names', () => {
    const element = read('<constructor __proto__="1" toString="2"><__proto__>3</__proto__></constructor>')

    expect([...element.attributes]).toEqual([
      ['__proto__', '1'],
      ['toString', '2'],
    ])
    expect(element.children[0]?.name).toBe('__proto__')
  })

  it('allows a byte order mark and a declaration', () => {
    expect(read(bytes(0xef, 0xbb, 0xbf, '<?xml version="1.0" encoding="utf-8"?>\n<a>é</a>')).text).toBe('é')
  })

  it('reads a declared version 1.1 by the rules of 1.0', () => {
    expect(read('<?xml version="1.1"?><a>\u0085</a>').text).toBe('\u0085')
    expect(() => read('<?xml version="1.1"?><a>&#1;</a>')).toThrow()
  })
})

describe('refusing', () => {
  it.each([
    ['nothing', ''],
    ['blanks', ' \n'],
    ['no markup', 'hello'],
    ['an unclosed element', '<a>'],
    ['crossed elements', '<a><b></a></b>'],
    ['two roots', '<a/><b/>'],
    ['text behind the root', '<a/>x'],
    ['a stray ampersand', '<a>a & b</a>'],
    ['an undefined entity', '<a>&nbsp;</a>'],
    ['the end of CDATA in text', '<a>]]></a>'],
    ['an attribute without quotes', '<a b=1/>'],
    ['an attribute twice', '<a b="1" b="1"/>'],
    ['an attribute twice under two prefixes', '<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="1"/>'],
    ['an unbound prefix', '<p:a/>'],
    ['a name of three parts', '<p:a:b xmlns:p="u"/>'],
    ['a declaration behind the beginning', ' <?xml version="1.0"?><a/>'],
    ['a NUL', '<a>\0</a>'],
    ['a reference to NUL', '<a>&#0;</a>'],
    ['a control character', '<a>\u0001</a>'],
    ['a reference to a control character', '<a>&#x1;</a>'],
    ['U+FFFE', '<a>\ufffe</a>'],
    ['a lone high surrogate', '<a>\ud800</a>'],
    ['a high surrogate before a letter', '<a>\ud800x</a>'],
    ['a lone low surrogate', '<a>\udc00</a>'],
    ['a reference to a surrogate', '<a>&#xD800;&#xDC00;</a>'],
    ['a reference beyond Unicode', '<a>&#x110000;</a>'],
    ['another encoding', '<?xml version="1.0" encoding="ISO-8859-1"?><a/>'],
    ['invalid UTF-8', bytes('<a>', 0xc3, 0x28, '</a>')],
    ['a surrogate in UTF-8', bytes('<a>', 0xed, 0xa0, 0x80, '</a>')],
    ['an overlong NUL', bytes('<a>', 0xc0, 0x80, '</a>')],
    ['Latin-1', Buffer.from('<a>é</a>', 'latin1')],
    ['UTF-16', Buffer.from('\ufeff<a/>', 'utf16le')],
  ])('refuses %s with the fault of the caller', (_what, source) => {
    expect(() => readXml(source, 'InvalidPayload')).toThrow(expect.objectContaining({ fault: 'InvalidPayload' }))
    expect(() => readXml(source, 'InvalidEnvelope')).toThrow(expect.objectContaining({ fault: 'InvalidEnvelope' }))
  })
})

it('describes a fault in words that fit into a sentence', () => {
  expect(() => read('<a/>x')).toThrow(/text data outside of root node$/)
})

describe('writing', () => {
  it('puts elements and texts on one line, in their order', () => {
    const node = {
      name: 'poll',
      content: [
        { name: 'question', content: 'a < b & c > d' },
        { name: 'empty', content: '' },
      ],
    }

    expect(writeXml(node)).toBe('<poll><question>a &lt; b &amp; c &gt; d</question><empty></empty></poll>')
  })

  it('writes carriage returns as references, which no reader turns into line feeds', () => {
    expect(writeXml({ name: 't', content: 'a\r\nb\r' })).toBe('<t>a&#xD;\nb&#xD;</t>')
  })

  it('replaces characters that XML forbids', () => {
    expect(cleanText('\0a\u0008\u000b\u001f\ud800b\udc00\ufffe\uffff')).toBe('�a���\ufffdb���')
    expect(cleanText('\t\n\r\u007f\u0085😀')).toBe('\t\n\r\u007f\u0085😀')
    expect([isCleanText('😀\r\n'), isCleanText('a\0'), isCleanText('a\0')]).toEqual([true, false, false])
  })

  it('is read back to the same text, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const written = writeXml({ name: 't', content: text })
        expect(read(written).text).toBe(cleanText(text))
        expect(read(Buffer.from(written)).text).toBe(cleanText(text))
      }),
    )
  })
})
