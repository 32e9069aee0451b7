import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readPlainXml } from '../../src/protocol/xml/plain-xml.js'
import { readBothWays } from './both-readers.js'
import { chance, mutate } from './mutations.js'
import { readVectors } from './vectors.js'

const payloads = readVectors(new URL('../vectors/federation.json', import.meta.url)).send.map(
  ({ payload_xml }) => payload_xml,
)

function expectTheSame(text: string): boolean {
  const read = readBothWays(text)
  expect(read?.plain, JSON.stringify(text)).toEqual(read?.parsed)
  return read !== undefined
}

describe('without the parser', () => {
  it('reads documents of the network’s own library exactly as the parser does', () => {
    const read = payloads.filter(expectTheSame)

    expect(read.length).toBe(payloads.length)
  })

  it.each([
    ['texts to the letter', '<a>  1\n\t<b>2</b> 3 </a>'],
    ['empty elements', '<a><b/><c></c></a>'],
    ['a root without anything', '<a/>'],
    ['a declaration and blanks around the root', '<?xml version="1.0" encoding="UTF-8"?>\n<a>1</a>\n'],
    [
      'references',
      '<a>&lt;&gt;&amp;&quot;&apos;&#233;&#xE9;&#x1f600;&#13;&#xA;&#9;]]&gt;&#xFFFD;&#x10FFFF;&#0065;</a>',
    ],
    ['references to references', '<a>&amp;lt;&#38;amp;</a>'],
    ['everything above ASCII', '<a>é 日本 🦊 \u0085\u2028\ufeff\u007f\ue000\ufffd</a>'],
    ['brackets and quotation marks', '<a>[link](x) > "y" \']] ]]</a>'],
    ['names of objects', '<constructor><__proto__>1</__proto__><toString/></constructor>'],
    ['names with marks', '<_a.b-c1><xml/></_a.b-c1>'],
  ])('reads %s', (_what, text) => {
    expect(expectTheSame(text)).toBe(true)
  })

  it.each([
    ['nothing', ''],
    ['a text', 'a'],
    ['attributes', '<a b="1"/>'],
    ['a blank in a tag', '<a ><b/></a>'],
    ['a blank in a closing tag', '<a></a >'],
    ['a prefix', '<p:a/>'],
    ['a name that is none', '<1/>'],
    ['a name in other letters', '<é/>'],
    ['an empty name', '<></>'],
    ['a comment', '<a><!-- b --></a>'],
    ['CDATA', '<a><![CDATA[b]]></a>'],
    ['an instruction', '<a><?b?></a>'],
    ['a document type', '<!DOCTYPE a><a/>'],
    ['another declaration', '<?xml version="1.0" encoding="ISO-8859-1"?><a/>'],
    ['a declaration behind the beginning', '\n<?xml version="1.0"?><a/>'],
    ['a carriage return', '<a>\r\n</a>'],
    ['a NUL', '<a>\0</a>'],
    ['a form feed', '<a>\f</a>'],
    ['U+FFFE', '<a>\ufffe</a>'],
    ['U+FFFF', '<a>\uffff</a>'],
    ['the end of CDATA', '<a>]]></a>'],
    ['an ampersand', '<a>b & c</a>'],
    ['an entity of HTML', '<a>&nbsp;</a>'],
    ['a name of objects as an entity', '<a>&constructor;</a>'],
    ['a reference in capitals', '<a>&#X41;</a>'],
    ['a reference to NUL', '<a>&#0;</a>'],
    ['a reference to a control character', '<a>&#x1F;</a>'],
    ['a reference to half of a pair', '<a>&#xD83D;&#xDE00;</a>'],
    ['a reference to the other half', '<a>&#xDFFF;</a>'],
    ['a reference to U+FFFF', '<a>&#xFFFF;</a>'],
    ['a reference beyond Unicode', '<a>&#x110000;</a>'],
    ['a reference without an end', '<a>&#65</a>'],
    ['an element without an end', '<a><b></b>'],
    ['a tag without an end', '<a>b</a'],
    ['only an end', '</a>'],
    ['crossed elements', '<a><b></a></b>'],
    ['two roots', '<a/><b/>'],
    ['text before the root', 'x<a/>'],
    ['text behind the root', '<a/>x'],
    ['a blank of Unicode behind the root', '<a/>\u00a0'],
    ['a byte order mark', '\ufeff<a/>'],
    ['what is nested deep', `${'<a>'.repeat(17)}${'</a>'.repeat(17)}`],
    ['what is long', `<a>${'b'.repeat(64 * 1024)}</a>`],
  ])('leaves %s to the parser', (_what, text) => {
    expect(readPlainXml(text)).toBeUndefined()
  })

  it('never reads documents that the parser refuses or reads differently', () => {
    const piece = fc.constantFrom(
      ...[
        '<',
        '>',
        '/',
        '</',
        '/>',
        '<a>',
        '</a>',
        '<b>',
        '</b>',
        '<a/>',
        '<a b="">',
        '<p:a/>',
        '<!--',
        '-->',
        '<?a?>',
      ],
      ...[
        '&amp;',
        '&',
        ';',
        '&#x41;',
        '&#xD800;',
        '&#0;',
        ']]>',
        '<![CDATA[',
        '\r',
        '\n',
        ' ',
        '\0',
        '\ufeff',
        'é',
        'x',
      ],
    )
    const pieces = fc.array(piece, { maxLength: 12 })
    const document = fc.tuple(fc.constantFrom('', '<?xml version="1.0"?>'), pieces, pieces)
    fc.assert(
      fc.property(document, ([declaration, before, within]) => {
        expectTheSame(`${declaration}<a>${within.join('')}</a>`)
        expectTheSame(`${declaration}${before.join('')}`)
      }),
      { numRuns: 3_000 },
    )
  })

  it('has the same result for changed payloads', () => {
    const random = chance(7)
    let read = 0
    for (let run = 0; run < 4_000; run += 1) {
      const text = mutate(random.oneOf(payloads), random.oneOf(payloads), random)
      if (expectTheSame(text)) read += 1
    }

    expect(read).toBeGreaterThan(400)
  })
})
