import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Mention } from '../../../src/protocol/mentions.js'
import { buildSummary, buildTitle, shorten } from '../../../src/web/text/plain-text.js'
import { type Names, writeHtml } from '../../../src/web/text/write-html.js'

const guid = '0123456789abcdef'

const names: Names = {
  personOf: ({ address, name }) =>
    address === 'ann@p.example' ? { path: `/people/${guid}`, name: name ?? 'Ann <3' } : undefined,
  entityOf: ({ author, guid }) => (author === 'ann@p.example' ? { path: `/posts/${guid}` } : undefined),
}

/** Without the direction of each block, which one test checks. */
const html = (text: string) => writeHtml(text, names).replaceAll(' dir="auto"', '')

describe('a text as HTML', () => {
  it.each([
    ['one\ntwo\n\nthree', '<p>one<br>\ntwo</p>\n<p>three</p>'],
    ['one\r\ntwo', '<p>one<br>\ntwo</p>'],
    ['**bold** and *slanted* and ~~gone~~', '<p><strong>bold</strong> and <em>slanted</em> and <s>gone</s></p>'],
    ['**a *b* c**', '<p><strong>a <em>b</em> c</strong></p>'],
    ['*a **b** c*', '<p><em>a <strong>b</strong> c</em></p>'],
    ['***a*** ___b___', '<p><em><strong>a</strong></em> <em><strong>b</strong></em></p>'],
    ['***a** b* ***a* b**', '<p><em><strong>a</strong> b</em> <strong><em>a</em> b</strong></p>'],
    ['**a *b*** *a **b***', '<p><strong>a <em>b</em></strong> <em>a <strong>b</strong></em></p>'],
    ['**a*b** a **b * c**', '<p><strong>a*b</strong> a <strong>b * c</strong></p>'],
    ['*a `b*` \\* c*', '<p><em>a <code>b*</code> * c</em></p>'],
    ['snake_case_name and 2*3*4', '<p>snake_case_name and 2<em>3</em>4</p>'],
    ['* not * this', '<ul>\n<li>not * this</li>\n</ul>'],
    ['a * b * c', '<p>a * b * c</p>'],
    ['**open', '<p>**open</p>'],
    ['\\*plain\\* \\<b>', '<p>*plain* &#60;b&#62;</p>'],
    ['`a <b> *c*`', '<p><code>a &#60;b&#62; *c*</code></p>'],
    ['```js\n<b>\n\n*x*\n```\nafter', '<pre dir="ltr"><code>&#60;b&#62;\n\n*x*</code></pre>\n<p>after</p>'],
    ['# Title #', '<h2>Title</h2>'],
    ['#\tTitle\t#\ntext', '<h2>Title</h2>\n<p>text</p>'],
    ['-\tone\n-\ttwo', '<ul>\n<li>one</li>\n<li>two</li>\n</ul>'],
    ['Title\n===\ntext', '<h2>Title</h2>\n<p>text</p>'],
    ['[a]() ![b]()', '<p>a 🖼 b</p>'],
    ['#notitle', '<p><a class="tag" href="/tags/notitle"><bdi>#notitle</bdi></a></p>'],
    ['> quoted\n> > twice', '<blockquote>\n<p>quoted</p>\n<blockquote>\n<p>twice</p>\n</blockquote>\n</blockquote>'],
    ['- one\n- two', '<ul>\n<li>one</li>\n<li>two</li>\n</ul>'],
    ['1. one\n2. two', '<ol>\n<li>one</li>\n<li>two</li>\n</ol>'],
    ['a\n\n***\n\nb', '<p>a</p>\n<hr>\n<p>b</p>'],
    [
      '#Tea <3 #<3',
      '<p><a class="tag" href="/tags/tea"><bdi>#Tea</bdi></a> &#60;3 <a class="tag" href="/tags/%3C3"><bdi>#&#60;3</bdi></a></p>',
    ],
  ])('has the usual forms: %j', (text, expected) => {
    expect(html(text)).toBe(expected)
  })

  const rel = 'rel="nofollow ugc noopener"'

  it.each([
    [
      'see https://a.example/b_c_(d).',
      `<p>see <a href="https://a.example/b_c_(d)" ${rel}>https://a.example/b_c_(d)</a>.</p>`,
    ],
    ['(https://a.example)', `<p>(<a href="https://a.example" ${rel}>https://a.example</a>)</p>`],
    [
      '[**here**](https://a.example/?a=1&b=2)',
      `<p><a href="https://a.example/?a=1&#38;b=2" ${rel}><strong>here</strong></a></p>`,
    ],
    [
      '[a https://b.example c](https://a.example "title")',
      `<p><a href="https://a.example" ${rel}>a https://b.example c</a></p>`,
    ],
    ['<https://a.example/b_c_.>', `<p><a href="https://a.example/b_c_." ${rel}>https://a.example/b_c_.</a></p>`],
    ['\\<https://a.example>', `<p>&#60;<a href="https://a.example" ${rel}>https://a.example</a>&#62;</p>`],
    ['[tea](https://a.example/Tea_(drink)).', `<p><a href="https://a.example/Tea_(drink)" ${rel}>tea</a>.</p>`],
    ['[here](<https://a.example>)', `<p><a href="https://a.example" ${rel}>here</a></p>`],
    ['![a cat](https://a.example/cat.png)', `<p><a href="https://a.example/cat.png" ${rel}>🖼 a cat</a></p>`],
    ['[x](javascript:alert(1))', '<p>[x](javascript:alert(1))</p>'],
    ['[x](<javascript:alert(1)>)', '<p>[x](&#60;javascript:alert(1)&#62;)</p>'],
    ['<javascript:alert(1)>', '<p>&#60;javascript:alert(1)&#62;</p>'],
    ['[x](//a.example)', '<p>[x](//a.example)</p>'],
    ['[*x*](/people/x "<b>") ![y](/z)', '<p>[<em>x</em>](/people/x &#34;&#60;b&#62;&#34;) ![y](/z)</p>'],
    ['[x][1]\n\n[1]: javascript:alert(1)', '<p>[x][1]</p>\n<p>[1]: javascript:alert(1)</p>'],
    ['[x][1]\n\n[1]: https://a.example', `<p><a href="https://a.example" ${rel}>x</a></p>`],
    ['ann@a.example www.a.example ftp://a.example', '<p>ann@a.example www.a.example ftp://a.example</p>'],
    ['[@{ann@p.example} #a](https://a.example)', `<p><a href="https://a.example" ${rel}>ann@p.example #a</a></p>`],
    ['[![a](https://a.example/b)](https://c.example)', `<p><a href="https://c.example" ${rel}>🖼 a</a></p>`],
    ['[x](data:text/html,y) javascript:z', '<p>[x](data:text/html,y) javascript:z</p>'],
  ])('links to the web and to nothing else: %j', (text, expected) => {
    expect(html(text)).toBe(expected)
  })

  it.each([
    ['hi @{ann@p.example}!', `<p>hi <a href="/people/${guid}"><bdi>@Ann &#60;3</bdi></a>!</p>`],
    ['hi @{Annie; ann@p.example}', `<p>hi <a href="/people/${guid}"><bdi>@Annie</bdi></a></p>`],
    ['hi @{bob@q.example}', '<p>hi <bdi>@bob@q.example</bdi></p>'],
    ['**@{a_b; ann@p.example}**', `<p><strong><a href="/people/${guid}"><bdi>@a_b</bdi></a></strong></p>`],
    [
      `see diaspora://ann@p.example/post/${guid}.`,
      `<p>see <a href="/posts/${guid}">diaspora://ann@p.example/post/${guid}</a>.</p>`,
    ],
    [
      `web+diaspora://ann@p.example/post/${guid}`,
      `<p><a href="/posts/${guid}">web+diaspora://ann@p.example/post/${guid}</a></p>`,
    ],
    [`diaspora://eve@q.example/post/${guid}`, `<p>diaspora://eve@q.example/post/${guid}</p>`],
  ])('knows people and posts by their names: %j', (text, expected) => {
    expect(html(text)).toBe(expected)
  })

  it('contains only tags and attributes made by the renderer, and closes them', () => {
    const piece = fc.constantFrom(
      ...[
        '<script>',
        '</p>',
        '"',
        "'",
        '&',
        '[',
        '](',
        ')',
        'https://a.example/"onload=x',
        '**',
        '*',
        '_',
        '~~',
        '`',
        '```\n',
      ],
      ...[
        '> ',
        '- ',
        '1. ',
        '# ',
        '\n',
        '\n\n',
        '#tag',
        '[a](/b "',
        '[a][1]',
        '\n[1]: /c',
        '<https://a.example',
        '>',
        '***',
        '@{',
        'ann@p.example',
        '}',
        '; ',
        'diaspora://',
        '\\',
        '!',
        'a b',
        '|',
        'a|b\n-|-\n',
        '    ',
        '&lt;',
        '---',
      ],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const written = html(pieces.join(''))
        const open: string[] = []
        for (const [tag, slash, name = ''] of written.matchAll(/<(\/?)([a-z0-9]+)[^<>]*>/g)) {
          expect(tag).toMatch(
            /^<(\/?(p|h[2-6]|ul|ol|li|blockquote|pre|code|strong|em|s|a|bdi|table|thead|tbody|tr|th|td)|hr|br|pre dir="ltr"|a class="tag" href="\/tags\/[^"<>' ]+"|a href="(https?:\/\/[^"<>' ]+" rel="nofollow ugc noopener|\/people\/[0-9a-f]+|\/posts\/[0-9A-Za-z]+)")>$/,
          )
          if (slash === '/') expect(open.pop()).toBe(name)
          else if (name !== 'hr' && name !== 'br') open.push(name)
        }
        expect(open).toEqual([])
        expect(written.replace(/<[^<>]*>/g, '')).not.toMatch(/[<>"']/)
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    '*',
    '**a ',
    '_a ',
    '[',
    '[a](',
    '![',
    '@{',
    '`',
    '> ',
    '- ',
    '#a',
    '# # ',
    'https://',
    'diaspora://',
    '\\',
    '~~~\n',
    '***',
    '***a',
    '***a ',
    ' *a_',
    '*_a ',
    '*a ~~b _c ',
    '<https://',
    '[a](b ',
    '[a]((',
    '[a](b) ',
    '[![a](b)](',
    '[a]: b\n',
    '[a]: b\n\n[a][',
    '[a][',
    '[a]:\t',
    '[a]: //',
    '![](',
    '&amp;',
    '``a',
    '`` ` ',
    '> > ',
    '- - ',
    '- a\n - b\n',
    'a|b\n-|-\n',
    '|-',
    '<!--',
    'a**b',
    'http://a.b ',
  ])('of maximum length made of %j is written in the time of a test', (piece) => {
    const text = piece.repeat(Math.ceil(65_535 / piece.length)).slice(0, 65_535)

    expect(() => html(text)).not.toThrow()
  })

  it('has one long address for many links only so often', () => {
    const text = `${'[a]'.repeat(10_000)}\n\n[a]: https://a.example/${'x'.repeat(2_000)}`

    expect(html(text).length).toBeLessThan(1_000_000)
    expect(html(text)).toMatch(/<\/a>aaa/)
  })

  it('is quoted as deep as anybody writes, and no deeper', () => {
    expect(html(`${'> '.repeat(20)}deep`)).toContain('<p>deep</p>')
    expect(html(`${'> '.repeat(30_000)}deep`).match(/<blockquote>/g)).toHaveLength(50)
  })

  it('has a direction in each block of words, and names and tags have their own', () => {
    const text = 'שלום #תה\n\n# שלום\n\n- שלום\n\n```\na\n```'

    expect(writeHtml(text, names)).toBe(
      '<p dir="auto">שלום <a class="tag" href="/tags/%D7%AA%D7%94"><bdi>#תה</bdi></a></p>\n<h2 dir="auto">שלום</h2>\n<ul>\n<li dir="auto">שלום</li>\n</ul>\n' +
        '<pre dir="ltr"><code>a</code></pre>',
    )
  })

  it('has tables and nested lists', () => {
    expect(html('a|b\n-|:-:\n1|2')).toBe(
      '<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>',
    )
    expect(html('- a\n  - b')).toBe('<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>')
  })
})

describe('a text without its marks', () => {
  it.each([
    ['**A** [b](https://c.example)\n\n- d', 'A b d'],
    ['@{Ann; ann@p.example} and @{bob@q.example}', 'Ann and bob@q.example'],
    ['', ''],
  ])('%j is %j', (text, expected) => {
    expect(buildSummary(text)).toBe(expected)
  })

  it.each([
    ['# The *title*\n\ntext', 'The title'],
    ['The title\n-----\ntext', 'The title'],
    ['The title\n=\ntext', 'The title'],
    ['The title\n-\ntext', 'The title'],
    ['No title\n- but a list', 'No title but a list'],
    [`# ${'x'.repeat(200)}\n\ntext`, `${'x'.repeat(67)}...`],
    [`${'x'.repeat(30)} **y**\n===\n${'z'.repeat(99)}`, `${'x'.repeat(30)} y`],
    [`# ${'x'.repeat(201)}\n\ntext`, `${'x'.repeat(67)}...`],
    ['Just  a\ntext', 'Just a text'],
    ['***x***', 'x'],
    ['___x___ **a *b***', 'x a b'],
    ['[rel](/people/x) y', 'rel y'],
    ['![*a* cat](/cat.png "A cat") and [**b**](#c)', 'a cat and b'],
    ['[x](javascript:alert(1)) [y](see above)', 'x [y](see above)'],
    ['[![a cat](https://a.example/cat.png)](https://a.example) sleeps', 'a cat sleeps'],
    ['<https://e.com>', 'https://e.com'],
    ['[ref][1]\n\n[1]: http://e.com', 'ref'],
    [
      '[One], [*two*][], ![three][  A  b ] and [four][2]\n\n[one]: /a\n[*Two*]: /b "B"\n\n[a B]: /c',
      'One, two, three and [four][2]',
    ],
    ['a[0][1]', 'a[0][1]'],
    ['[Note]: done', '[Note]: done'],
    ['#\tTab\nx', 'Tab'],
    ['Title\n===\t\nx', 'Title'],
    ['🍵'.repeat(71), `${'🍵'.repeat(67)}...`],
    ['🍵'.repeat(70), '🍵'.repeat(70)],
  ])('has a title: %j', (text, expected) => {
    expect(buildTitle(text)).toBe(expected)
  })

  it('uses the given names of mentioned people in its title', () => {
    const nameOf = ({ address, name }: Mention) => name ?? (address === 'ann@p.example' ? 'Ann' : address)

    expect(buildTitle('## For @{ann@p.example}', nameOf)).toBe('For Ann')
    expect(buildTitle('*@{ann@p.example}*, @{Annie; ann@p.example} and @{b@p.example}', nameOf)).toBe(
      'Ann, Annie and b@p.example',
    )
  })

  it('resolves a reference defined at its end', () => {
    expect(buildTitle(`[ref][1] ${'x'.repeat(2_000)}\n\n[1]: http://e.com`)).toBe(`ref ${'x'.repeat(63)}...`)
  })

  it('is not cut in the middle of a sign', () => {
    expect(buildTitle(`x ${' '.repeat(1_997)}🍵`)).toBe('x')
    expect(buildTitle(`${'\n'.repeat(3_000)}tea`)).toBe('tea')
  })

  it('has none where there is nothing to read', () => {
    expect(buildTitle(' \n')).toBeUndefined()
    expect(shorten('abc', 3)).toBe('abc')
  })
})
