import { describe, expect, it } from 'vitest'
import {
  countKind,
  firstMessages,
  type LivedCorpus,
  MESSAGES,
  MIX,
  roundToFullMixes,
} from '../../bench/lived/lived-corpus.js'

const corpus: LivedCorpus = {
  people: [],
  users: [],
  localPosts: [],
  messages: Array.from({ length: MESSAGES }, (_, index) => ({
    kind: MIX[index % MIX.length] ?? 'posts',
    guid: `${index}`,
    body: '',
  })),
}

describe('the corpus of the bench lived', () => {
  it('has 2 000 public posts, 600 comments, 400 likes and 500 private posts', () => {
    const kinds = ['posts', 'comments', 'likes', 'private'] as const
    expect(kinds.map((kind) => countKind(corpus, kind))).toEqual([2_000, 600, 400, 500])
  })

  it('keeps the mix when it is shortened', () => {
    const short = firstMessages(corpus, 700)
    expect(short.messages).toHaveLength(700)
    expect(countKind(short, 'posts') / 700).toBe(2_000 / 3_500)
  })

  it.each([
    [1, 35],
    [360, 350],
    [3_500, 3_500],
  ])('rounds %i messages to whole mixes', (count, whole) => {
    expect(roundToFullMixes(count)).toBe(whole)
  })
})
