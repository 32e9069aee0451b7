import { describe, expect, it } from 'vitest'
import { readPastedLink } from '../../src/protocol/pasted-links.js'

const guid = '0123456789abcdef'

describe('pasted texts', () => {
  it.each([
    ['alice@pod.example', { to: 'person', address: 'alice@pod.example' }],
    [' acct:Alice@Pod.example ', { to: 'person', address: 'alice@pod.example' }],
    ['diaspora://alice@pod.example', { to: 'person', address: 'alice@pod.example' }],
    ['web+diaspora://alice@pod.example/', { to: 'person', address: 'alice@pod.example' }],
    ['https://pod.example/u/alice', { to: 'person', address: 'alice@pod.example' }],
    ['http://localhost:4000/u/alice?x=1#y', { to: 'person', address: 'alice@localhost:4000' }],
    [`https://pod.example/people/${guid}`, { to: 'profile', host: 'pod.example', guid }],
    [`HTTPS://Pod.Example/posts/${guid}/?a=b#${guid}`, { to: 'post', host: 'pod.example', guid }],
    [`https://pod.example:8443/p/${guid}`, { to: 'post', host: 'pod.example:8443', guid }],
    [
      `diaspora://alice@pod.example/post/${guid}`,
      { to: 'entity', link: { author: 'alice@pod.example', type: 'post', guid } },
    ],
    [
      `WEB+DIASPORA://alice@pod.example/poll/${guid}`,
      { to: 'entity', link: { author: 'alice@pod.example', type: 'poll', guid } },
    ],
  ])('%s is read', (text, link) => {
    expect(readPastedLink(text)).toEqual(link)
  })

  it.each([
    '',
    'alice',
    'https://',
    'https://pod.example/',
    'https://pod.example/posts/7',
    `https://pod.example/posts/${guid}/photos`,
    `https://pod.example/posts/..%2f${guid}`,
    `https://pod.example//posts/${guid}`,
    `https://user:password@pod.example/posts/${guid}`,
    `ftp://pod.example/posts/${guid}`,
    `javascript://pod.example/posts/${guid}`,
    'https://pod.example/u/al%20ice',
    `diaspora:///post/${guid}`,
    `https://${'a'.repeat(256)}.example/posts/${guid}`,
    `https://pod.example/posts/${guid}?${'x'.repeat(2_048)}`,
    'diaspora://'.repeat(100_000),
  ])('%.60s is not a link', (text) => {
    expect(readPastedLink(text)).toBeUndefined()
  })
})
