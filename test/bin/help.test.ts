import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { commandGroups } from '../../bin/command-groups.js'
import { buildProgram } from '../../bin/program.js'
import { commandsPage } from '../../scripts/commands-page.js'

/** Every executable command with its groups: `user create`. */
function commandsOf(command: Command, path: readonly string[] = []): (readonly [string, Command])[] {
  const below = command.commands.flatMap((each) => commandsOf(each, [...path, each.name()]))
  const own = command.registeredArguments.length > 0 || command.commands.length === 0
  return own ? [[path.join(' '), command], ...below] : below
}

const commands = commandsOf(await buildProgram())

it('README runs commands with npx pod, and uses only options that curl of Ubuntu 22.04 has', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')

  expect(readme).toContain('npx pod user create alice')
  expect(readme).not.toMatch(/dist\/bin\/pod\.js|curl .*--json/)
})

it('docs/commands.md matches the commands', async () => {
  const page = await readFile(new URL('../../docs/commands.md', import.meta.url), 'utf8')

  expect(page, 'npm run commands').toBe(await commandsPage())
})

describe('--help', () => {
  it('lists the commands', () => {
    expect(commands.map(([name]) => name)).toEqual(
      expect.arrayContaining([
        'start',
        'web',
        'worker',
        'db migrate',
        'user create',
        'token',
        'token revoke',
        'dead drop',
      ]),
    )
  })

  it.each(commands)('the help of "pod %s" has an example, and --json', (name, command) => {
    let page = ''
    command.configureOutput({
      writeOut: (text) => {
        page += text
      },
    })
    command.outputHelp()

    expect(page).toMatch(new RegExp(`Example:\\n {2}.*pod ${name}`))
    expect(page).toContain('--json')
    expect(command.description()).toMatch(/\.$/)
  })
})

describe('a command', () => {
  it.each(commandGroups)('the command group $words is loaded with its module only', async ({ words }) => {
    for (const word of words) {
      const program = await buildProgram(word)

      expect(program.commands.map((command) => command.name())).toEqual(words)
    }
  })
})
