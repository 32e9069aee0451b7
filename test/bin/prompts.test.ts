import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Prompts, withPrompts } from '../../bin/prompts.js'

const CTRL_C = '\u0003'
const own = process.stdin
let shown = ''
beforeEach(() => {
  shown = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    shown += text
    return true
  })
})
afterEach(() => {
  vi.restoreAllMocks()
  Object.defineProperty(process, 'stdin', { value: own, configurable: true })
})

/** Replaces stdin. A terminal echoes what it gets until it is in raw mode. */
function openStdin({ isTTY }: { readonly isTTY: boolean }) {
  const modes: boolean[] = []
  const setRawMode = (isRaw: boolean) => void modes.push(isRaw)
  const stdin = Object.assign(new PassThrough(), isTTY ? { isTTY, setRawMode } : {})
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
  return { stdin, modes }
}

const passphraseAndHost = async (prompts: Prompts) => [
  await prompts.askHidden('Passphrase: '),
  await prompts.ask('Host: '),
]

it('a terminal shows a typed line, but not a hidden one, and is left as it was', async () => {
  const { stdin, modes } = openStdin({ isTTY: true })
  const answers = withPrompts(passphraseAndHost)
  await expect.poll(() => shown).toContain('Passphrase: ')
  stdin.write('secret words\r')
  await expect.poll(() => shown).toContain('Host: ')
  stdin.write('pod.example\r')

  expect(await answers).toEqual(['secret words', 'pod.example'])
  expect(shown).toContain('pod.example')
  expect(shown).not.toContain('secret')
  expect(modes).toEqual([true, false])
})

it('Ctrl-C at a question ends the command', async () => {
  const { stdin, modes } = openStdin({ isTTY: true })
  const answers = withPrompts(passphraseAndHost)
  answers.catch(() => undefined)
  await expect.poll(() => shown).toContain('Passphrase: ')
  stdin.write(`half${CTRL_C}`)

  await expect(answers).rejects.toThrow('Interrupted. Nothing was changed.')
  expect(modes).toEqual([true, false])
})

it('the lines of a pipe are the answers, one after the other, and nothing after its end', async () => {
  const { stdin } = openStdin({ isTTY: false })
  stdin.end('secret words\npod.example\n')

  const answers = await withPrompts(async (prompts) => [...(await passphraseAndHost(prompts)), await prompts.ask('?')])

  expect(answers).toEqual(['secret words', 'pod.example', ''])
  expect(shown).toContain('Passphrase: ')
})

it('stdin is not read without a question', async () => {
  const { stdin } = openStdin({ isTTY: true })

  expect(await withPrompts(async ({ isTerminal }) => isTerminal)).toBe(true)
  expect(stdin.listenerCount('keypress') + stdin.listenerCount('data')).toBe(0)
})
