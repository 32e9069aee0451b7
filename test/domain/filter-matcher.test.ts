import { afterEach, describe, expect, it, vi } from 'vitest'
import { commentDocument, messageDocument, postDocument } from '../../src/domain/moderation/filters/filter-document.js'
import { compileFilters } from '../../src/domain/moderation/filters/filter-matcher.js'
import { type NewFilter, readFilterRule } from '../../src/domain/moderation/filters/filters.js'

const identity = { guid: 'a'.repeat(32), author: 'rita@r.example', isPublic: true }

function compile(...inputs: readonly Omit<NewFilter, 'action'>[]) {
  const stored = inputs.map((input, index) => ({
    ...readFilterRule({ ...input, action: 'count' }),
    id: index,
    version: 1,
    createdBy: 'mod',
    createdAt: new Date(),
    changedAt: new Date(),
  }))
  return compileFilters(stored)
}

const idsIn = (matcher: ReturnType<typeof compile>, text: string) =>
  matcher.match(postDocument(identity, { text })).map(({ filter }) => filter.id)

/** Whether a single filter finds a text. */
const finds = (kind: NewFilter['kind'], value: string, text: string) => idsIn(compile({ kind, value }), text).length > 0

describe('a filter', () => {
  it.each([
    ['word', 'ass', 'what an ass', true],
    ['word', 'ass', 'Ass!', true],
    ['word', 'ass', 'class', false],
    ['word', 'ass', 'assets', false],
    ['word', 'c++', 'I like c++, really', true],
    ['phrase', 'cheap  Watches', 'buy CHEAP\nwatches now', true],
    ['phrase', '安い時計', 'とても安い時計です', true],
    ['pattern', 'cas*no', 'my caaas1no', false],
    ['pattern', 'cas*no', 'the best cas1n0no here', true],
    ['pattern', '*agra', 'try v1agra', true],
    ['pattern', '*agra', 'viagras', false],
    ['pattern', 'viag*', 'viag ra', true],
    ['pattern', 'a*bcd*z', 'abcdz', true],
    ['pattern', 'a*bcd*z', 'abcd', false],
    ['link_host', 'spam.example', 'see https://x.SPAM.example/a', true],
    ['link_host', 'spam.example', 'see https://notspam.example', false],
    ['link_host', 'spam.example', 'see https://good.example@spam.example:8080/a', true],
    ['link_host', 'spam.example', 'see https://good.example/?u=spam.example', false],
    ['link_host', '*.spam.example', '[here](http://spam.example.)', true],
    ['link_host', 'spam.example', 'www.spam.example', true],
    ['link_host', 'bücher.example', 'https://xn--bcher-kva.example/', true],
    ['link_host', 'spam.example', 'https:\\\\spam.example\\a', true],
    ['link_host', 'spam.example', 'https://good.example/?u=https://spam.example/a', true],
    ['link_host', 'spam.example', `https://${'u'.repeat(1_000)}@spam.example.:443/a`, true],
    ['link_host', 'spam.example', `https://${'a.'.repeat(200)}spam.example/`, false],
    ['link_host', 'spam.example', `_www.${'_www.'.repeat(500)} _www.spam.example_`, true],
    ['link_host', 'spam.example', 'https://spam.example.evil.example', false],
    ['word', 'spam', 'some _spam_ here', true],
    ['word', 'spam', '__spam__, and more', true],
    ['word', 'spam', 'sp*a*m, **sp**am and sp`am`', true],
    ['word', 'spam', 's&#112;am', true],
    ['word', 'spam', 'sp&shy;am, sp&#x200b;am', true],
    ['word', 'spam', '[sp](https://good.example/(a))am', true],
    ['word', 'spam', '[sp][1]am\n\n[1]: https://good.example', true],
    ['word', 'spam', 'spam_filter and my_spam', false],
    ['word', 'spam', '&amp;#115;pam', false],
    ['word', 'a_b', 'the _a_b_ here', true],
    ['phrase', 'buy now', '> buy\n> **now**', true],
    ['phrase', '**buy', 'please **buy now**', true],
    ['pattern', 'spa*m', 'some _spaaam_ here', true],
    ['link_host', 'spam.example', '[here](https&#58;//spam.example)', true],
    ['link_host', 'spam.example', '[here](https&colon;//spam&period;example/a)', true],
    ['link_host', 'spam.example', '[here](https\\://spam.example)', true],
    ['link_host', 'spam.example', '[here](https:\\/\\/spam\\.example)', true],
    ['link_host', 'spam.example', '[here][1]\n\n[1]: https&#x3a;//spam.example', true],
    ['link_host', 'spam.example', 'https://sp%61m.example/', true],
    ['link_host', 'spam.example', 'https://spam.example%2Fa', true],
    ['link_host', 'spam.example', 'https://spam.example%20is', true],
    ['link_host', 'spam.example', `https://${'%61'.repeat(60)}.${'%62'.repeat(40)}.spam.example/`, true],
    ['link_host', 'spam.example', `https://${'%61'.repeat(260)}.spam.example/`, false],
    ['link_host', 'spam.example', `https://${'%75'.repeat(1_000)}@%73pam.example/`, true],
    ['link_host', 'spam.example', `https://${'%75'.repeat(1_000)}@www.a@spam.example%2Fa`, true],
    ['link_host', 'spam.example', 'https://%77.%53pam.example/_www.%41.%53pam.example', true],
    ['link_host', 'www.a.spam.example', 'https://%62.%63~www.%41.%53pam.example', true],
    ['link_host', 'spam.example', 'https://spam.example%@', true],
    ['link_host', 'spam.example', '[spam.example](https://good.example)', false],
    ['link_prefix', 'https://shop.example/sale', '[x](http://shop&#46;example/sale/1)', true],
    ['link_prefix', 'https://shop.example/sale', 'http://shop.example/Sale/1', true],
    ['link_prefix', 'https://shop.example/sale', 'http://shop.example/about', false],
    ['tag', '#Casino', 'hello #casino', true],
    ['tag', 'casino', 'hello #casinos casino', false],
  ] as const)('%s %s in "%s": %s', (kind, value, text, expected) => {
    expect(finds(kind, value, text)).toBe(expected)
  })

  it('finds words in other Unicode forms, and with invisible characters', () => {
    for (const text of ['ca\u200bsino', 'ｃａｓｉｎｏ', '𝐜𝐚𝐬𝐢𝐧𝐨', 'cas\u00adino', 'CAS\u2060INO\ufe0f']) {
      expect([text, finds('word', 'casino', text)]).toEqual([text, true])
    }
  })

  describe('of links', () => {
    afterEach(() => vi.restoreAllMocks())

    it.each(['^www.%41@', '^www.%41%41%41%41@', '^www.%41', `${'^www.%41'.repeat(97)}@`, `${'^www.%41'.repeat(97)}/`])(
      'decodes each character at most twice, in a text of %j',
      (piece) => {
        const text = piece.repeat(Math.ceil(65_535 / piece.length)).slice(0, 65_535)
        const links = compile({ kind: 'link_host', value: 'spam.example' })
        let decodedCharacters = 0
        const readNumber = Number.parseInt
        vi.spyOn(Number, 'parseInt').mockImplementation((digits, radix) => {
          decodedCharacters += 1
          return readNumber(digits, radix)
        })

        expect(idsIn(links, text)).toEqual([])
        expect(decodedCharacters).toBeLessThanOrEqual(2 * (text.split('%').length - 1))
      },
    )
  })

  it('searches its fields only', () => {
    const inPolls = compile({ kind: 'word', value: 'casino', fields: ['poll'] })

    expect(idsIn(inPolls, 'casino')).toEqual([])
    expect(inPolls.match(postDocument(identity, { text: '', poll: ['Casino?'] }))).toMatchObject([{ field: 'poll' }])
    expect(inPolls.match(commentDocument(identity, 'casino'))).toEqual([])
  })

  it('does not see private content unless it may', () => {
    const message = messageDocument({ guid: 'a', author: 'rita@r.example' }, ['casino'])

    expect(compile({ kind: 'word', value: 'casino' }).match(message)).toEqual([])
    expect(compile({ kind: 'word', value: 'casino', isPrivate: true }).match(message)).toHaveLength(1)
  })

  it('is refused if its value does not fit the kind', () => {
    const refused: readonly (readonly [NewFilter['kind'], string])[] = [
      ['word', '  '],
      ['word', 'two words'],
      ['word', 'x'.repeat(101)],
      ['phrase', '\u200b'],
      ['pattern', 'casino'],
      ['pattern', 'a*b'],
      ['pattern', '(a+)+*b'],
      ['link_host', 'localhost'],
      ['link_host', 'a.example/b'],
      ['link_prefix', '/path'],
      ['tag', '#'],
    ]
    for (const [kind, value] of refused) {
      expect(() => readFilterRule({ kind, value, action: 'count' }), `${kind} ${value}`).toThrow(
        expect.objectContaining({ reason: 'filter_invalid' }),
      )
    }
  })
})

describe('many filters', () => {
  it('are all found in one pass, also where one is part of another', () => {
    const values = ['he', 'she', 'hers', 'his', 'usher']
    const matcher = compile(...values.map((value) => ({ kind: 'phrase' as const, value })))

    expect(idsIn(matcher, 'an usher').sort()).toEqual(
      [0, 1, 2, 4].filter((id) => 'an usher'.includes(values[id] ?? '')),
    )
    expect(idsIn(matcher, 'ushers').sort()).toEqual([0, 1, 2, 4])
  })

  it('find the same as a search for each value, in random texts', () => {
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed % below
    }
    const word = () => Array.from({ length: 1 + random(4) }, () => 'abc'[random(3)]).join('')
    const values = [...new Set(Array.from({ length: 60 }, word))]
    const matcher = compile(...values.map((value) => ({ kind: 'phrase' as const, value })))
    for (let round = 0; round < 200; round += 1) {
      const text = Array.from({ length: random(30) }, () => 'abc '[random(4)]).join('')
      const expected = values.flatMap((value, id) => (text.replace(/\s+/g, ' ').includes(value) ? [id] : []))
      expect(idsIn(matcher, text).sort((one, other) => one - other)).toEqual(expected)
    }
  })
})
