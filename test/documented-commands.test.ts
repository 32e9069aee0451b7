import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { expect, it } from 'vitest'
import { buildProgram } from '../bin/program.js'

const root = join(import.meta.dirname, '..')
const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n')
const program = await buildProgram()

/** The program as a page starts it, and the words of the command behind it. */
const IN_PAGE = /(?:^|[\s`|(])(?:npx )?(?:(?:pod|copy)|node (?:\S+ )?dist\/bin\/pod\.js) ([a-z][^`\n]*)/g
/** A command that a message of the program names. */
const IN_MESSAGE = /["'`(](?:npx )?pod ([a-z][^"'`)\n]*)["'`)]/g

/** Words up to the end of the command in a shell. */
function wordsOf(text: string): readonly string[] {
  const [command = ''] = text.split(/\s*(?:[|>;#&]|\.\s|,\s|$)/)
  return command.trim().split(/\s+/)
}

/** Why a command cannot be run; undefined: it can, or the text is no command. */
function faultOf(words: readonly string[]): string | undefined {
  let command: Command = program
  let position = 0
  for (; position < words.length; position += 1) {
    const next = command.commands.find((each) => each.name() === words[position])
    if (next === undefined) break
    command = next
  }
  if (command === program) return words.length > 1 && words[1]?.startsWith('--') ? 'no such command' : undefined
  const isGroup = command.commands.length > 0 && command.registeredArguments.length === 0
  const [first = ''] = words.slice(position)
  if (isGroup && /^[a-z-]+$/.test(first)) return `${command.name()} has no command ${first}`
  const options = words.slice(position).filter((word) => word.startsWith('--'))
  const unknown = options.map((word) => word.replace(/[=:,.)"'].*$/, '')).filter((name) => !hasOption(command, name))
  return unknown.length === 0 ? undefined : `${command.name()} has no option ${unknown.join(', ')}`
}

function hasOption(command: Command, name: string): boolean {
  return name === '--' || name === '--help' || command.options.some(({ long }) => long === name)
}

function faultsIn(file: string, pattern: RegExp): readonly string[] {
  const text = readFileSync(join(root, file), 'utf8')
  return [...text.matchAll(pattern)].flatMap(([, words = '']) => {
    const fault = faultOf(wordsOf(words))
    return fault === undefined ? [] : [`${file}: pod ${words}: ${fault}`]
  })
}

it('every command on a page exists with its options', () => {
  const pages = files.filter((file) => /^(?:README|CHANGELOG|SECURITY|docs\/[^/]+)\.?(?:md)?$/.test(file))

  expect(pages).toContain('docs/operating.md')
  expect(pages.flatMap((page) => faultsIn(page, IN_PAGE))).toEqual([])
})

it('every command that a message of the program names exists with its options', () => {
  const sources = files.filter((file) => /^(?:src|bin|workers|embedded-postgres)\/.*\.ts$/.test(file))

  expect(sources.flatMap((source) => faultsIn(source, IN_MESSAGE))).toEqual([])
})

it.each(['backup createe --to x', 'backup create --too x', 'storage move --to s3 --dry'])(
  'a command that does not exist is found: %s',
  (text) => {
    expect(faultOf(wordsOf(text))).toBeDefined()
  },
)
