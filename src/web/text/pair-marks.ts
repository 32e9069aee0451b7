import type { TextRange } from '../../protocol/mentions.js'

/** An opening mark and the one that closes it. */
export interface MarkPair {
  readonly type: 'strong' | 'emphasis' | 'struck'
  /** Of either mark. */
  readonly length: number
  readonly close: number
}

/** The same sign once or several times in a row; `from` and `to` are what is left of it. */
interface Run {
  readonly sign: string
  readonly length: number
  readonly opens: boolean
  readonly closes: boolean
  from: number
  to: number
}

/** An opening mark that is hidden behind more others than this is not looked for: with this, long rows of marks are cheap. */
const FARTHEST = 8

/** Finds which marks belong together, by where they open: `***a** b*` is strong text inside of emphasised text. */
export function pairMarks(text: string, runs: Iterable<TextRange>): ReadonlyMap<number, MarkPair> {
  const pairs = new Map<number, MarkPair>()
  const open: Run[] = []
  for (const place of runs) {
    const run = runAt(text, place)
    while (run.closes && run.from < run.to) {
      const index = openerOf(run, open)
      const opener = open[index]
      if (opener === undefined) break
      const length = lengthOf(opener, run)
      opener.to -= length
      pairs.set(opener.to, { type: typeOf(run.sign, length), length, close: run.from })
      run.from += length
      open.length = opener.from < opener.to ? index + 1 : index
    }
    if (run.opens && run.from < run.to) open.push(run)
  }
  return pairs
}

function runAt(text: string, { start, end }: TextRange): Run {
  const sign = text.charAt(start)
  const before = text.charAt(start - 1)
  const behind = text.charAt(end)
  // In the middle of a word, an underscore is a letter.
  const inWord = (neighbour: string) => sign === '_' && /\w/.test(neighbour)
  return {
    sign,
    length: end - start,
    opens: /\S/.test(behind) && !inWord(before),
    closes: /\S/.test(before) && !inWord(behind),
    from: start,
    to: end,
  }
}

function openerOf(closer: Run, open: readonly Run[]): number {
  const last = open.length - 1
  for (let index = last; index >= 0 && index > last - FARTHEST; index -= 1) {
    const opener = open[index]
    if (opener !== undefined && belongs(opener, closer)) return index
  }
  return -1
}

function belongs(opener: Run, closer: Run): boolean {
  if (opener.sign !== closer.sign) return false
  if (opener.sign === '~') return lengthOf(opener, closer) === 2
  // A mark that may be either belongs to its like: in `**a*b**` the one in the middle stands for itself.
  const isEither = opener.closes || closer.opens
  const areLike = opener.length % 3 === 0 && closer.length % 3 === 0
  return !isEither || areLike || (opener.length + closer.length) % 3 !== 0
}

function lengthOf(opener: Run, closer: Run): number {
  return Math.min(2, opener.to - opener.from, closer.to - closer.from)
}

function typeOf(sign: string, length: number): MarkPair['type'] {
  if (sign === '~') return 'struck'
  return length === 2 ? 'strong' : 'emphasis'
}
