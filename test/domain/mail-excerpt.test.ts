import { describe, expect, it } from 'vitest'
import { mailExcerpt } from '../../src/domain/mail/write-mail.js'

describe('the excerpt of a mail', () => {
  it.each([
    ['A **public** answer', 'A public answer'],
    ['Hello @{Alice; alice@pod.example} and @{bob@pod.example}', 'Hello Alice and bob@pod.example'],
    ['[a link](https://a.example/) and ![a picture](https://a.example/b.png)', 'a link and a picture'],
    ['> two\n> lines', 'two lines'],
    ['***', undefined],
  ])('of %j is %j', (text, excerpt) => {
    expect(mailExcerpt(text)).toBe(excerpt)
  })

  it('ends with a mark if the text is longer', () => {
    expect(mailExcerpt('word '.repeat(200))).toBe(`${'word '.repeat(60).slice(0, 299)}…`)
    expect(mailExcerpt(`${'*'.repeat(1_990)}beginning and end`)).toBe('beginning…')
    expect(mailExcerpt(`${'*'.repeat(1_999)}😀`)).toBe(undefined)
  })

  it('reads only the beginning: all of a long text could take seconds', () => {
    const link = (characters: number) => `[${'a'.repeat(characters)}](https://a.example/)`
    expect(mailExcerpt(link(400))).toBe(`${'a'.repeat(299)}…`)
    expect(mailExcerpt(link(3_000))).toBe(`[${'a'.repeat(298)}…`)
  })
})
