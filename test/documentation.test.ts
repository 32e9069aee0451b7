import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')

const FOLDERS = 'src|workers|bin|migrations|test|bench|scripts|embedded-postgres|deploy|docs'

/** Names of other systems. */
const FOREIGN_NAMES = new Set([
  'NODE_EXTRA_CA_CERTS',
  ...['livenessProbe', 'readinessProbe', 'preStop', 'securityContext', 'emptyDir'],
])

const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean)
const pages = files.filter((file) =>
  /^(?:(?:README|CONTRIBUTING|SECURITY|FEDERATION)\.md|docs\/(?:decisions\/)?[^/]+\.md)$/.test(file),
)
const wordsOfCode = new Set(
  files
    .filter((file) => !file.endsWith('.md') && (!file.includes('/') || new RegExp(`^(?:${FOLDERS}|\\.ci)/`).test(file)))
    .flatMap((file) => readFileSync(join(root, file), 'utf8').match(/[A-Za-z_][A-Za-z0-9_]*/g) ?? []),
)

it.each(pages)('%s names only files and identifiers that exist', (page) => {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/```[\s\S]*?```/g, '')
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map(([, name = '']) => name)

  expect(quoted.filter((name) => !exists(name))).toEqual([])
})

function exists(name: string): boolean {
  if (FOREIGN_NAMES.has(name)) return true
  if (/^[\w./-]+\.(?:ts|mjs)$/.test(name)) return files.some((file) => file === name || file.endsWith(`/${name}`))
  if (new RegExp(`^(?:${FOLDERS})/[\\w./-]*$`).test(name)) {
    const path = name.replace(/\/$/, '')
    return files.some((file) => file === path || file.startsWith(`${path}/`))
  }
  const isIdentifier = /^(?:[A-Z][A-Z0-9]*_[A-Z0-9_]+|[a-z]+[A-Z][A-Za-z0-9]*(?:\(\))?)$/.test(name)
  return !isIdentifier || wordsOfCode.has(name.replace('()', ''))
}
