import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Hcard,
  readHcard,
  readWebFinger,
  writeHcard,
  writeWebFinger,
} from '../../src/protocol/discovery/discovery-documents.js'
import { readHcardFields } from '../../src/protocol/discovery/hcard-fields.js'
import { HCARD_LIMITS } from '../../src/protocol/discovery/limits.js'

const publicKey = generateKeyPairSync('rsa', { modulusLength: 1024 })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString()
  .trim()

const failed = expect.objectContaining({ fault: 'DiscoveryFailed' })

describe('WebFinger', () => {
  const address = 'alice@pod.example:3000'
  const links = writeWebFinger({
    address,
    guid: '7dba7ca01d64013485eb3131731751e9',
    podUrl: 'https://pod.example:3000/',
  })
  const hcardLink = { rel: 'http://microformats.org/profile/hcard', href: 'https://elsewhere.example/hcard/1' }
  const podLink = { rel: 'http://joindiaspora.com/seed_location', href: 'https://pod.example:3000/' }

  function read(document: unknown) {
    return readWebFinger(JSON.stringify(document), address)
  }

  it('lists the addresses of all documents of a person', () => {
    expect(links).toEqual({
      subject: 'acct:alice@pod.example:3000',
      aliases: ['https://pod.example:3000/people/7dba7ca01d64013485eb3131731751e9'],
      links: [
        {
          rel: 'http://microformats.org/profile/hcard',
          type: 'text/html',
          href: 'https://pod.example:3000/hcard/users/7dba7ca01d64013485eb3131731751e9',
        },
        { rel: 'http://joindiaspora.com/seed_location', type: 'text/html', href: 'https://pod.example:3000/' },
        { rel: 'http://pod.example:3000/seed_location', type: 'text/html', href: 'https://pod.example:3000/' },
        { rel: 'http://webfinger.net/rel/profile-page', type: 'text/html', href: 'https://pod.example:3000/u/alice' },
        { rel: 'salmon', href: 'https://pod.example:3000/receive/users/7dba7ca01d64013485eb3131731751e9' },
        { rel: 'http://ostatus.org/schema/1.0/subscribe', template: 'https://pod.example:3000/people?q={uri}' },
        { rel: 'http://openid.net/specs/connect/1.0/issuer', href: 'https://pod.example:3000/' },
      ],
    })
  })

  it('is read back', () => {
    expect(read(links)).toEqual({
      hcardUrl: 'https://pod.example:3000/hcard/users/7dba7ca01d64013485eb3131731751e9',
      podUrl: 'https://pod.example:3000/',
    })
  })

  it('may name another host, and the pod without a slash', () => {
    const document = {
      subject: 'ALICE@pod.example:3000',
      links: [hcardLink, { ...podLink, href: 'https://other.example' }],
    }

    expect(read(document)).toEqual({ hcardUrl: hcardLink.href, podUrl: 'https://other.example/' })
  })

  it('may name the pod by an address with more than its origin', () => {
    const href = 'https://ann:secret@Pod.example:443/people?a=b#c'

    expect(read({ subject: address, links: [hcardLink, { ...podLink, href }] }).podUrl).toBe('https://pod.example/')
  })

  it('may name the pod by the link of its own host, which counts less than that of the network', () => {
    const own = { rel: 'http://pod.example:3000/seed_location', href: 'https://own.example/' }

    expect(read({ subject: address, links: [own, hcardLink] }).podUrl).toBe('https://own.example/')
    expect(read({ subject: address, links: [own, hcardLink, podLink] }).podUrl).toBe(podLink.href)
  })

  it.each([
    ['about another person', { subject: 'acct:bob@pod.example:3000', links: [hcardLink, podLink] }],
    ['without a subject', { links: [hcardLink, podLink] }],
    ['about a number', { subject: 1, links: [hcardLink, podLink] }],
    ['without links', { subject: address }],
    ['with links that are not a list', { subject: address, links: hcardLink }],
    ['with links that are none', { subject: address, links: [null, 1, 'x', []] }],
    ['without an hCard', { subject: address, links: [podLink] }],
    ['without a pod', { subject: address, links: [hcardLink] }],
    [
      'with an hCard without a path',
      { subject: address, links: [{ ...hcardLink, href: 'https://x.example' }, podLink] },
    ],
    ['with an hCard without a host', { subject: address, links: [{ ...hcardLink, href: '/hcard/1' }, podLink] }],
    [
      'with an hCard at no address of the web',
      { subject: address, links: [{ ...hcardLink, href: 'file://x/y' }, podLink] },
    ],
    ['with an hCard of no scheme', { subject: address, links: [{ ...hcardLink, href: '//x.example/y' }, podLink] }],
    ['with an hCard at no port', { subject: address, links: [{ ...hcardLink, href: 'https://x:99999/y' }, podLink] }],
    ['with a pod that is a script', { subject: address, links: [hcardLink, { ...podLink, href: 'javascript://x/' }] }],
    ['with an hCard that is not a text', { subject: address, links: [{ ...hcardLink, href: 1 }, podLink] }],
    ['with a pod without a host', { subject: address, links: [hcardLink, { ...podLink, href: '/' }] }],
    ['with a pod of no known place', { subject: address, links: [hcardLink, { ...podLink, href: 'https://:x/' }] }],
    ['that is a list', []],
    ['that is null', null],
  ])('fails %s', (_what, document) => expect(() => read(document)).toThrow(failed))

  it('fails when it is not JSON', () => expect(() => readWebFinger('<XRD/>', address)).toThrow(failed))
})

describe('an hCard', () => {
  const alice: Hcard = {
    guid: '7dba7ca01d64013485eb3131731751e9',
    publicKey,
    nickname: 'alice',
    fullName: `Zoë <b>&"O'Neil`,
    firstName: 'Zoë <b>&"',
    lastName: "O'Neil",
    searchable: true,
    imageUrl: 'https://pod.example/l.jpg?a=1&b="',
    imageUrlMedium: 'https://pod.example/m.jpg',
    imageUrlSmall: 'https://pod.example/s.jpg',
  }
  const images = { imageUrl: 'https://pod.example/l.jpg' }

  it('has an element of each class that readers look for', () => {
    const html = writeHcard({ ...alice, ...images })

    expect(html).toContain('<div id="content_inner" class="entity_profile vcard author">')
    for (const name of [
      'uid',
      'nickname',
      'full_name',
      'searchable',
      'key',
      'first_name',
      'family_name',
      'photo',
      'photo_medium',
      'photo_small',
    ]) {
      expect(html).toContain(`<dl class="entity_${name}">`)
    }
    expect(html).toContain(`<pre class="key">${publicKey}</pre>`)
    expect(html).toContain('<img class="photo avatar" width="50" height="50" src="https://pod.example/s.jpg">')
  })

  it('escapes names of people', () => {
    expect(writeHcard(alice)).toContain('<span class="given_name">Zoë &#60;b&#62;&#38;&#34;</span>')
    expect(writeHcard(alice)).not.toContain('<b>')
  })

  it('is read back for any name of a person', () => {
    const name = fc.string({ unit: 'grapheme', maxLength: 10 }).map((text) => text.replaceAll(';', '').trim())
    fc.assert(
      fc.property(name, name, fc.boolean(), (firstName, lastName, searchable) => {
        const hcard = {
          ...alice,
          ...images,
          firstName,
          lastName,
          fullName: `${firstName} ${lastName}`.trim(),
          searchable,
        }
        expect(readHcard(writeHcard(hcard))).toEqual(hcard)
      }),
    )
  })

  const html = writeHcard({ ...alice, ...images, fullName: 'Alice', firstName: 'Alice', lastName: '' })

  function changeDocument(from: string | RegExp, to: string): string {
    const page = html.replace(from, to)
    if (page === html) throw new Error(`nothing to change: ${String(from)}`)
    return page
  }

  it.each([
    [
      'in another shape',
      changeDocument(/<\/?(?:dl|dt|dd)[^>]*>/g, '')
        .replace(/<span class="uid">([^<]*)<.span>/, "<b class='x uid y'><i></i>$1</b>")
        .replace(/<img/g, '<p class="a entity_photo entity_photo_medium entity_photo_small"><img'),
    ],
    ['with a key of the other form', changeDocument(publicKey, pkcs1(publicKey))],
    [
      'with more of each class further down',
      changeDocument(
        '</body>',
        '<b class="uid">x</b><b class="fn">y;</b><p class="entity_photo"><img class="photo" src=""></p></body>',
      ),
    ],
    [
      'with a key further inside of its pre',
      changeDocument('<pre class="key">', '<pre><b><i class="key">').replace('</pre>', '</i></b></pre>'),
    ],
    ['without a nickname', changeDocument('class="nickname"', '')],
    ['with its key outside of a pre', changeDocument(/<(\/?)pre/g, '<$1div')],
    ['with another key in front of the pre', changeDocument('<h2>', '<p class="key">of the house</p><h2>')],
    ['with blanks around its values', changeDocument(alice.guid, `\n  ${alice.guid}\n`)],
    ['with relative images', changeDocument('https://pod.example/s.jpg', '/s.jpg')],
    ['without an end', changeDocument(/<\/div>\s*<\/div>[\s\S]*/, '')],
  ])('may come %s', (_what, page) => {
    expect(readHcard(page)).toMatchObject({ guid: alice.guid, fullName: 'Alice', searchable: true })
  })

  it.each([
    ['nothing', ''],
    ['no guid', changeDocument('class="uid"', '')],
    ['a short guid', changeDocument(alice.guid, 'abc')],
    ['no full name', changeDocument('class="fn"', '')],
    ['a semicolon in its name', changeDocument('"fn">Alice', '"fn">Ali;ce')],
    ['a full name of 71 characters', changeDocument('"fn">Alice', `"fn">${'a'.repeat(71)}`)],
    ['a first name of 33 characters', changeDocument('"given_name">Alice', `"given_name">${'a'.repeat(33)}`)],
    ['a last name of 33 characters', changeDocument('"family_name">', `"family_name">${'a'.repeat(33)}`)],
    ['no key', changeDocument('class="key"', '')],
    ['an unusable key', changeDocument('MI', 'AA')],
    ['no large image', changeDocument('entity_photo"', '"')],
    ['no medium image', changeDocument('entity_photo_medium', '')],
    ['no small image', changeDocument('entity_photo_small', '')],
    ['an image without a path', changeDocument('https://pod.example/s.jpg', 'https://pod.example')],
    ['an image that is not a photo', changeDocument('class="photo avatar" width="50"', 'class="avatar"')],
    ['100 000 levels', changeDocument('<body>', `<body>${'<b>'.repeat(100_000)}`)],
    ['a guid behind a field without an end', changeDocument('<h2>', '<p class="uid">').replace('</h2>', '')],
  ])('fails with %s', (_what, page) => expect(() => readHcard(page)).toThrow(failed))

  it('is read no further than its last field', () => {
    expect(readHcard(changeDocument('</body>', `${' '.repeat(10_000)}${'<b>'.repeat(100_000)}`)).guid).toBe(alice.guid)
  })

  it.each([
    ['<', '<'],
    ['references', '&lt;'],
    ['blanks and <', ' <'],
    ['elements', '<i>x</i>'],
  ])('keeps no more of a field than it may have when it is full of %s', (_what, run) => {
    const fields = readHcardFields(
      `<pre><div class="fn uid nickname given_name family_name searchable key">${run.repeat(30_000)}`,
    )

    expect([...fields.keys()].toSorted()).toEqual([
      'family_name',
      'fn',
      'given_name',
      'key',
      'nickname',
      'searchable',
      'uid',
    ])
    for (const [field, value] of fields) {
      expect([field, value.length]).toEqual([field, expect.any(Number)])
      expect(value.length).toBeLessThanOrEqual(HCARD_LIMITS.keyCharacters + 1)
    }
    expect(fields.get('uid')?.length).toBeLessThanOrEqual(HCARD_LIMITS.guidCharacters + 1)
  })

  it('has its values after any number of blanks', () => {
    expect(readHcard(changeDocument(alice.guid, `${' \n'.repeat(1_000)}${alice.guid}`)).guid).toBe(alice.guid)
  })

  it('holds no characters that can be neither stored nor sent on', () => {
    expect(readHcard(changeDocument('"fn">Alice', '"fn">A\0l&#1;i\ud800ce')).fullName).toBe('A\ufffdl\ufffdi\ufffdce')
  })

  it('is searchable only with exactly the text `true`', () => {
    expect(readHcard(changeDocument('>true<', '>TRUE<')).searchable).toBe(false)
    expect(readHcard(changeDocument('class="searchable"', '')).searchable).toBe(false)
  })
})

function pkcs1(pem: string): string {
  return createPublicKey(pem).export({ type: 'pkcs1', format: 'pem' }).toString()
}
