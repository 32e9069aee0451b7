import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { passesCheck, type Result } from '../../bench/bench.js'
import { type Command, type GemProcess, startGem } from '../../bench/protocol/gem-process.js'
import { benchPeer, compareWithGem } from '../../bench/protocol/peer.js'
import { type Corpus, makeCorpus } from '../../bench/protocol/protocol-corpus.js'

const node = (script: string): Command => [process.execPath, '--eval', script]

/** Speaks as the Ruby program does: reads what it is sent and says what `answer` makes of it, two hundred passes in a second. */
const scripted = (answer: string) =>
  node(`
    const textOf = (envelope, name) => {
      const data = envelope.match(/<me:data[^>]*>([^<]*)/)[1]
      return Buffer.from(data, 'base64url').toString().match(new RegExp('<' + name + '>([^<]*)'))[1]
    }
    const read = (envelope) => ({ author: textOf(envelope, 'author'), guid: textOf(envelope, 'guid') })
    const say = (words) => process.stdout.write(JSON.stringify(words) + '\\n')
    say({ ready: true })
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const task = JSON.parse(line)
      const answered = { opened: task.envelopes.length * 200, microseconds: 1_000_000, readings: task.envelopes.map(read) }
      ${answer}
    })`)

describe('the bench peer', () => {
  afterEach(() => vi.restoreAllMocks())

  it.each<[string, Command]>([
    ['there is no Ruby', ['/no/such/ruby']],
    ['Ruby has not got the gem', node('')],
  ])('is left out where %s', async (_where, command) => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const results: Result[] = []
    for await (const result of benchPeer({ rounds: 1, size: 1 }, command)) results.push(result)
    expect(results).toEqual([])
    expect(written.mock.calls).toEqual([
      ['There is no ruby with the gem diaspora_federation, so everything is left out.\n'],
    ])
  })

  describe('beside a process with the gem', () => {
    let corpus: Corpus
    beforeAll(() => {
      corpus = makeCorpus(2048, 2)
    })

    async function compareWith(answer: string): Promise<Result> {
      const gem = await requireGem(scripted(answer))
      try {
        return await compareWithGem(gem, corpus, 2048, 1)
      } finally {
        await gem.close()
      }
    }

    it('reports how many times as many messages the pod opens', async () => {
      const result = await compareWith('say(answered)')
      expect(result).toMatchObject({ bench: 'peer', case: 'rsa2048', limit: 4 * 200, rounds: 1, ok: true })
      expect(result.ratio).toBeCloseTo(result.value / 800)
      expect(passesCheck(result)).toBe(true)
    })

    it('is wrong when one message was read differently', async () => {
      const { ok } = await compareWith('say({ ...answered, readings: [...answered.readings].reverse() })')
      expect(ok).toBe(false)
    })

    it('gives it all that is needed for reading', async () => {
      const gem = await requireGem(scripted('say({ ...answered, readings: [{ refused: JSON.stringify(task) }] })'))
      const task = { envelopes: [], keys: { 'remy@r.example': 'PEM' }, parentAuthor: 'remy@r.example', microseconds: 5 }
      const { readings } = await gem.open(task)
      await gem.close()
      expect(readings).toEqual([{ refused: JSON.stringify(task) }])
    })

    it('fails when the process ends before its answer', async () => {
      await expect(compareWith(`process.kill(process.pid, 'SIGKILL')`)).rejects.toThrow('has ended')
    })
  })
})

async function requireGem(command: Command): Promise<GemProcess> {
  const gem = await startGem(command)
  if (gem === undefined) throw new Error('It was written to start.')
  return gem
}
